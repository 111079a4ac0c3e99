"""What a learner has done: reviews, bookmarks and interviews in one file, when each question is due, and summaries."""
