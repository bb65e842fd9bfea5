//! A big Perl module whose documentation is the work.

use super::rng::Rng;
use super::text::markov;

/// A module of about `bytes` bytes: headings, lists, verbatim blocks and paragraphs with
/// formatting codes, which is where pod2text's time goes.
pub(super) fn module(seed: u64, bytes: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ 0x70_6f64);
    let text = String::from_utf8_lossy(&markov(seed, bytes + 4096)).replace('\n', " ");
    let mut words = text.split(' ').filter(|w| !w.is_empty());
    let mut out =
        String::from("package Big;\nuse strict;\nour $VERSION = '1.00';\n1;\n__END__\n\n");
    out.push_str("=encoding utf8\n\n=head1 NAME\n\nBig - a long document\n\n");
    let mut section = 0_u64;
    while (out.len() as u64) < bytes {
        section += 1;
        out.push_str(&format!("=head{} Section {section}\n\n", 1 + rng.below(3)));
        for _ in 0..rng.between(2, 5) {
            paragraph(&mut rng, &mut words, &mut out);
        }
        match rng.below(3) {
            0 => list(&mut rng, &mut words, &mut out),
            1 => verbatim(&mut rng, &mut words, &mut out),
            _ => {}
        }
    }
    out.push_str("=cut\n");
    out.into_bytes()
}

fn paragraph<'a>(rng: &mut Rng, words: &mut impl Iterator<Item = &'a str>, out: &mut String) {
    let (length, mut column) = (rng.between(20, 80), 0);
    for _ in 0..length {
        let word = words.next().unwrap_or("end");
        let piece = match rng.below(14) {
            0 => format!("B<{word}>"),
            1 => format!("I<{word}>"),
            2 => format!("C<< {word}->{word} >>"),
            3 => format!("L<{word}|Big/\"Section {}\">", rng.between(1, 9)),
            4 => format!("E<lt>{word}E<gt>"),
            _ => word.to_owned(),
        };
        column += piece.len() + 1;
        out.push_str(&piece);
        out.push(if column > 72 { '\n' } else { ' ' });
        if column > 72 {
            column = 0;
        }
    }
    out.push_str("\n\n");
}

fn list<'a>(rng: &mut Rng, words: &mut impl Iterator<Item = &'a str>, out: &mut String) {
    out.push_str("=over 4\n\n");
    for item in 0..rng.between(2, 6) {
        out.push_str(&format!("=item {}. {}\n\n", item + 1, words.next().unwrap_or("end")));
        paragraph(rng, words, out);
    }
    out.push_str("=back\n\n");
}

fn verbatim<'a>(rng: &mut Rng, words: &mut impl Iterator<Item = &'a str>, out: &mut String) {
    for _ in 0..rng.between(3, 8) {
        let name = words.next().unwrap_or("end").replace('.', "");
        out.push_str(&format!("    my ${name} = {}({});\n", name, rng.below(1000)));
    }
    out.push('\n');
}
