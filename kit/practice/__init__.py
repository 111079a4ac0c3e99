"""Practice: quizzes and what they are made of, as state machines that read and print nothing."""
