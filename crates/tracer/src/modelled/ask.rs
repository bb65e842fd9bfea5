//! What is asked of the modelled core.

use model::core::{Ideal, Mode, Settings};

use super::InterruptAsk;

/// Which core times the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CoreAsk {
    /// The one-pass core, for every instruction.
    Fast,
    /// The one-pass core in random windows, warmed in between.
    Sampled {
        /// The relative half-width of the cycles that is good enough, in millionths.
        error_ppm: u32,
        /// Where the windows fall.
        seed: u64,
    },
    /// The core that steps cycle by cycle.
    Reference,
    /// The one-pass core, of which samples are published instead of its account.
    Interrupts(InterruptAsk),
    /// No core: only caches, translation and predictors, to see what warming costs.
    Warm,
}

/// A machine and how to run it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelAsk {
    /// The machine's name.
    pub name: String,
    /// The text of its file.
    pub machine: String,
    /// The core.
    pub core: CoreAsk,
    /// Mode and idealisation.
    pub settings: Settings,
}

const MODES: [(&str, Mode); 4] = [
    ("native", Mode::Native),
    ("single", Mode::Single),
    ("in-order", Mode::InOrder),
    ("in-order-superscalar", Mode::InOrderSuperscalar),
];

impl ModelAsk {
    /// As a line of the settings; the machine file goes apart.
    pub(crate) fn to_line(&self) -> String {
        let core = match self.core {
            CoreAsk::Fast => "fast".to_owned(),
            CoreAsk::Sampled { error_ppm, seed } => format!("sampled:{error_ppm}:{seed}"),
            CoreAsk::Reference => "reference".to_owned(),
            CoreAsk::Warm => "warm".to_owned(),
            CoreAsk::Interrupts(ask) => ask.to_word(),
        };
        let mode = MODES.iter().find(|(_, mode)| *mode == self.settings.mode);
        let mode = mode.map_or("native", |(name, _)| name);
        format!("{core} {mode} {} {}", self.settings.ideal.0, self.name)
    }

    /// From a line of the settings and the text of the machine file.
    pub(crate) fn from_line(line: &str, machine: String) -> Option<ModelAsk> {
        let mut words = line.splitn(4, ' ');
        let core = match words.next()? {
            "fast" => CoreAsk::Fast,
            "reference" => CoreAsk::Reference,
            "warm" => CoreAsk::Warm,
            word if word.starts_with("interrupts:") => {
                CoreAsk::Interrupts(InterruptAsk::from_word(word)?)
            }
            sampled => {
                let (error, seed) = sampled.strip_prefix("sampled:")?.split_once(':')?;
                CoreAsk::Sampled { error_ppm: error.parse().ok()?, seed: seed.parse().ok()? }
            }
        };
        let mode = words.next()?;
        let mode = MODES.iter().find(|(name, _)| *name == mode)?.1;
        let ideal = Ideal(words.next()?.parse().ok()?);
        let settings = Settings { mode, ideal };
        Some(ModelAsk { name: words.next()?.to_owned(), machine, core, settings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_comes_back_and_odd_lines_do_not() {
        let settings = Settings { mode: Mode::Single, ideal: Ideal(5) };
        let sampled = CoreAsk::Sampled { error_ppm: 30_000, seed: 7 };
        for core in [CoreAsk::Fast, sampled, CoreAsk::Reference, CoreAsk::Warm] {
            let name = "my machine".to_owned();
            let ask = ModelAsk { name, machine: "x".into(), core, settings };
            assert_eq!(ModelAsk::from_line(&ask.to_line(), "x".into()), Some(ask));
        }
        for line in ["", "fast", "slow native 0 m", "fast odd 0 m", "fast native x m"] {
            assert_eq!(ModelAsk::from_line(line, String::new()), None, "{line}");
        }
    }
}
