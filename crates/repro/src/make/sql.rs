//! A database script: two tables, an index, joins, updates, aggregates.
//!
//! Integers only: SQLite averages in 80-bit floating point, which emulators round differently.

use super::rng::Rng;

const REGIONS: &[&str] = &["north", "south", "east", "west", "centre"];

/// Inserts `rows` orders of rows / 8 customers in one transaction, then asks questions of them.
pub(super) fn script(seed: u64, rows: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let customers = (rows / 8).max(1);
    let mut out = String::from(
        "PRAGMA journal_mode = OFF;\nCREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, \
         region TEXT);\nCREATE TABLE item(id INTEGER PRIMARY KEY, customer INTEGER, cents INTEGER, \
         note TEXT);\nBEGIN;\n",
    );
    for id in 1..=customers {
        let region = rng.pick(REGIONS);
        out.push_str(&format!(
            "INSERT INTO customer VALUES({id},'name{:05}','{region}');\n",
            rng.below(100_000)
        ));
    }
    for id in 1..=rows {
        let customer = rng.between(1, customers);
        out.push_str(&format!(
            "INSERT INTO item VALUES({id},{customer},{},'{} {}');\n",
            rng.below(100_000),
            rng.pick(&["red", "green", "blue", "grey"]),
            rng.pick(&["lamp", "chair", "table", "door", "shelf"])
        ));
    }
    out.push_str("COMMIT;\nCREATE INDEX item_customer ON item(customer);\n");
    for _ in 0..8 {
        out.push_str(&format!(
            "UPDATE item SET cents = cents + {} WHERE customer % 7 = {};\n",
            rng.between(1, 99),
            rng.below(7)
        ));
        out.push_str(QUESTIONS);
    }
    out.into_bytes()
}

const QUESTIONS: &str = "\
SELECT region, count(*), sum(cents) FROM item JOIN customer ON customer.id = item.customer \
GROUP BY region ORDER BY region;
SELECT name, total FROM (SELECT customer AS c, sum(cents) AS total FROM item GROUP BY customer) \
JOIN customer ON customer.id = c ORDER BY total DESC, name LIMIT 5;
SELECT count(*) FROM item WHERE note LIKE '%red c%' AND cents BETWEEN 1000 AND 50000;
SELECT substr(note, 1, 3) AS k, sum(cents) / count(*) FROM item GROUP BY k ORDER BY k;
";
