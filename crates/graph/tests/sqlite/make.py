#!/usr/bin/env python3
"""Makes shop.sqlite and utf16.sqlite, which crates/graph/tests/sqlite.rs reads. Small pages, so that trees
have inner pages and texts flow over. `rows.txt` has the names and heights of all plants by SQLite itself.
"""
import sqlite3
from pathlib import Path

folder = Path(__file__).parent


def made(name, *pragmas):
    (folder / name).unlink(missing_ok=True)
    database = sqlite3.connect(folder / name)
    for pragma in pragmas:
        database.execute(f"PRAGMA {pragma}")
    return database


shop = made("shop.sqlite", "page_size = 512")
shop.executescript("""
    CREATE TABLE customers (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, born DATE, "e-mail" TEXT UNIQUE);
    CREATE TABLE plants (code TEXT PRIMARY KEY, name TEXT NOT NULL, height REAL, notes TEXT, photo BLOB);
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY AUTOINCREMENT, -- counted
        customer_id INT REFERENCES customers(id) ON DELETE CASCADE,
        placed_by TEXT, paid BOOLEAN,
        FOREIGN KEY (placed_by) REFERENCES customers ("e-mail"));
    CREATE TABLE order_plants (order_id INTEGER REFERENCES orders, plant TEXT REFERENCES plants(code),
        PRIMARY KEY (order_id, plant));
    CREATE TABLE beds (garden TEXT, row INT, soil TEXT, PRIMARY KEY (garden, row)) WITHOUT ROWID;
    CREATE TABLE stands (plant TEXT REFERENCES plants, garden TEXT, row INT, since INT,
        FOREIGN KEY (garden, row) REFERENCES beds);
    CREATE TABLE "nothing" (a, b);
    CREATE VIEW tall AS SELECT * FROM plants WHERE height > 100;
    CREATE INDEX by_height ON plants (height);
    INSERT INTO customers VALUES (7, 'Ada', 'Byron', '1815-12-10', 'ada@example.org'), (9, 'Mary', NULL, NULL, NULL);
    INSERT INTO beds VALUES ('North', 1, 'clay'), ('North', 2, NULL), ('South', 1, 'sand');
    INSERT INTO orders (id, customer_id, placed_by, paid) VALUES (-3, 7, 'ada@example.org', 1), (200, 9, NULL, 0), (201, 99, NULL, NULL);
""")
shop.executemany("INSERT INTO plants VALUES (?, ?, ?, ?, ?)", [
    (f"p{i:03}", f"Plant {i}", i * 1.5 if i % 7 else None, "long " * 500 if i == 11 else f"note of {i}", b"\x00\x01" if i == 3 else None)
    for i in range(300)])
shop.executemany("INSERT INTO order_plants VALUES (?, ?)", [(-3, "p001"), (-3, "p011"), (200, "p299")])
shop.executemany("INSERT INTO stands VALUES (?, ?, ?, ?)", [("p001", "North", 2, 2020), ("p002", "South", 1, 40_000_000_000)])
shop.execute("ALTER TABLE beds ADD COLUMN sun TEXT")
shop.commit()
rows = shop.execute("SELECT name, height FROM plants ORDER BY code").fetchall()
(folder / "rows.txt").write_text("".join(f"{name}\t{'' if height is None else format(height, 'g')}\n" for name, height in rows))
shop.close()

utf16 = made("utf16.sqlite", "encoding = 'UTF-16le'", "page_size = 512")
utf16.execute("CREATE TABLE städte (name TEXT, einwohner INT)")
utf16.execute("INSERT INTO städte VALUES ('Zürich 🏔', 443037)")
utf16.commit()
utf16.close()
