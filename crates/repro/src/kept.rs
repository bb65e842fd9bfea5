//! Finished measurements, kept so that an interrupted row goes on where it stopped.
//!
//! A measurement is found again only under the same key: row, program, size, seed, inputs,
//! versions, command. Anything else measures anew.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::run::sha256_hex;

/// The measurements of earlier runs.
#[derive(Debug)]
pub struct Kept {
    directory: PathBuf,
    fresh: bool,
}

impl Kept {
    /// Those under `directory`; none of them is believed when `fresh`.
    pub fn new(directory: PathBuf, fresh: bool) -> Kept {
        Kept { directory, fresh }
    }

    /// The measurement under `key`; a damaged one counts as absent.
    pub fn find<T: DeserializeOwned>(&self, key: &Value) -> Option<T> {
        if self.fresh {
            return None;
        }
        let text = fs::read_to_string(self.path(key)).ok()?;
        let mut file: Value = serde_json::from_str(&text).ok()?;
        // The name is a hash of the key: compare the key itself.
        if file.get("key") != Some(key) {
            return None;
        }
        serde_json::from_value(file.get_mut("measured")?.take()).ok()
    }

    /// Keeps a measurement.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn put<T: Serialize>(&self, key: &Value, measured: &T) -> Result<(), String> {
        let path = self.path(key);
        let wrong = |e: std::io::Error| format!("{}: {e}", path.display());
        fs::create_dir_all(&self.directory).map_err(wrong)?;
        let text = json!({ "key": key, "measured": measured }).to_string();
        let partial = path.with_extension("partial");
        fs::write(&partial, text).map_err(wrong)?;
        fs::rename(&partial, &path).map_err(wrong)
    }

    fn path(&self, key: &Value) -> PathBuf {
        let hash = sha256_hex(key.to_string().as_bytes());
        self.directory.join(format!("{}.json", hash.get(..32).unwrap_or(&hash)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_found_under_its_own_key_only() {
        let directory = std::env::temp_dir().join(format!("repro-kept-{}", std::process::id()));
        let kept = Kept::new(directory.clone(), false);
        let key = json!({"row": "r", "seed": 1});
        kept.put(&key, &vec![1.5, 2.5]).unwrap();
        assert_eq!(kept.find::<Vec<f64>>(&key), Some(vec![1.5, 2.5]));
        assert_eq!(kept.find::<Vec<f64>>(&json!({"row": "r", "seed": 2})), None);
        assert_eq!(Kept::new(directory.clone(), true).find::<Vec<f64>>(&key), None);
        fs::write(kept.path(&key), "{").unwrap();
        assert_eq!(kept.find::<Vec<f64>>(&key), None);
        fs::remove_dir_all(directory).unwrap();
    }
}
