//! The known name nearest to a misspelt one.

/// The one of `known` that the fewest edits turn `name` into, when few enough are needed.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, best) =
        known.into_iter().map(|candidate| (edits(name, candidate), candidate)).min()?;
    (distance <= 2 + name.chars().count() / 4).then_some(best)
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(&b) {
            let here = (diagonal + usize::from(x != *y)).min(left + 1).min(*slot + 1);
            diagonal = std::mem::replace(slot, here);
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("suite", "suite"), 0);
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        let known = ["suite", "mux-total", "mux-kl"];
        assert_eq!(nearest("siute", known), Some("suite"));
        assert_eq!(nearest("mux_total", known), Some("mux-total"));
        assert_eq!(nearest("frobnicate", known), None);
    }
}
