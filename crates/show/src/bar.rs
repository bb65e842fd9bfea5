//! A share as a bar of characters.

/// Eighths of a block, from one to seven.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar for a share between 0 and 1, `width` columns at most; padded to them.
pub fn bar(share: f64, width: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    text.extend((eighths % 8).checked_sub(1).and_then(|place| EIGHTHS.get(place)));
    let gap = width.saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n(' ', gap));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share_to_an_eighth() {
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.0, 3), "   ");
        assert_eq!(bar(0.125, 1), "▏");
        assert_eq!(bar(7.0, 2), "██");
        assert_eq!(bar(f64::NAN, 2), "  ");
    }
}
