use super::*;

#[test]
fn addresses_belong_to_the_innermost_call() {
    let flat = inlines::innermost(vec![(10, 50, 0), (20, 30, 1), (25, 28, 2), (40, 60, 3)]);
    assert_eq!(
        flat,
        [(10, 20, 0), (20, 25, 1), (25, 28, 2), (28, 30, 1), (30, 40, 0), (40, 60, 3)]
    );
    assert_eq!(inlines::innermost(Vec::new()), []);
}

#[test]
fn rows_that_overlap_are_cut_where_the_next_begins() {
    let row = |start, end, line| LineRow { start, end, file: 0, line, discriminator: 0 };
    let mut rows = vec![row(1, 9, 1), row(4, 6, 2), row(6, 8, 0)];
    rows::cut_overlaps(&mut rows);
    let lines = Lines { rows, ..Lines::default() };
    let line = |address| lines.row_at(address).map(|row| row.line);
    assert_eq!(
        [0, 1, 3, 4, 5, 6, 8].map(line),
        [None, Some(1), Some(1), Some(2), Some(2), None, None]
    );
}
