BEGIN TRANSACTION;
CREATE TABLE bookmarks (
            question_id TEXT PRIMARY KEY, is_on INTEGER NOT NULL, changed_at TEXT NOT NULL
        ) WITHOUT ROWID;
INSERT INTO "bookmarks" VALUES('sums/off',0,'2026-03-02T09:30:00.123456+00:00');
INSERT INTO "bookmarks" VALUES('sums/which',1,'2026-03-02T09:30:00.123456+00:00');
CREATE TABLE cards (
            question_id TEXT PRIMARY KEY, due TEXT NOT NULL, stability REAL NOT NULL, difficulty REAL NOT NULL,
            state TEXT NOT NULL, last_review TEXT NOT NULL, num_reviews INTEGER NOT NULL
        ) WITHOUT ROWID;
INSERT INTO "cards" VALUES('sums/which','2026-03-08T09:30:00.123456+00:00',5.31879276748807683361e+00,4.75285848853255732393e+00,'Review','2026-03-03T09:30:00.123456+00:00',2);
CREATE TABLE interviews (
            id TEXT PRIMARY KEY, plan TEXT NOT NULL, state TEXT NOT NULL, started TEXT NOT NULL, updated TEXT NOT NULL,
            finished TEXT
        ) WITHOUT ROWID;
INSERT INTO "interviews" VALUES('i','{"parts": [1, 2.5]}','{}','2026-03-02T09:30:00.123456+00:00','2026-03-02T09:30:00.123456+00:00',NULL);
CREATE TABLE reviews (
            id TEXT PRIMARY KEY, question_id TEXT NOT NULL, kind TEXT NOT NULL, topic TEXT NOT NULL,
            level INTEGER NOT NULL, asked_at TEXT NOT NULL, verdict TEXT NOT NULL, score REAL NOT NULL, rating TEXT,
            num_hints INTEGER NOT NULL, seconds REAL NOT NULL, confidence REAL, seed INTEGER, mode TEXT NOT NULL
        ) WITHOUT ROWID;
INSERT INTO "reviews" VALUES('review-0000','sums/which','choice','sums',2,'2026-03-02T09:30:00.123456+00:00','right',1.0,'good',0,12.5,NULL,7,'quiz');
INSERT INTO "reviews" VALUES('review-0001','sums/which','choice','sums',2,'2026-03-03T09:30:00.123456+00:00','marked',0.75,'hard',0,12.5,0.5,NULL,'interview');
INSERT INTO "reviews" VALUES('review-0002','sums/which','choice','sums',2,'2026-03-04T09:30:00.123456+00:00','right',1.0,'good',0,12.5,NULL,7,'quiz');
CREATE TABLE undone (review_id TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO "undone" VALUES('review-0002');
CREATE INDEX reviews_of_a_question ON reviews (question_id, asked_at);
PRAGMA user_version = 1;
COMMIT;
