//! Columns of few texts in long runs, straight into Parquet's pages.
//!
//! Rows are sorted, so that a path stands in thousands of rows one after the other. The crate's
//! writer takes, hashes and compares the text of every row; here each run costs one look.
//!
//! ```text
//! dictionary page   every text once
//! data page         present? (runs) | number of the text (runs, or eight at a time packed)
//! ```

use std::collections::HashMap;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::{Symbol, Texts};

/// A column of a row group, encoded.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// Texts, present or not; where the column must have them, all are.
pub(super) fn texts_chunk(
    column: ColumnDescPtr,
    symbols: &[Symbol],
    texts: &Texts,
    level: i32,
) -> Result<Chunk, ParquetError> {
    let mut dictionary = Dictionary::default();
    let mut present = Hybrid::new(1);
    let mut runs = Vec::new();
    let mut missing = 0;
    for run in symbols.chunk_by(|left, right| left == right) {
        let text = run.first().and_then(|&symbol| Some((symbol, texts.text(symbol)?)));
        present.put(u32::from(text.is_some()), run.len());
        match text {
            Some((symbol, text)) => runs.push((dictionary.number(symbol, text), run.len())),
            None => missing += run.len(),
        }
    }
    let mut numbers = Hybrid::new(dictionary.bits());
    runs.iter().for_each(|&(number, length)| numbers.put(number, length));
    let levels = match column.max_def_level() {
        0 => Vec::new(),
        _ => present.finish(),
    };
    let mut chunk = Pages::new(column, level, symbols.len(), missing);
    match dictionary.least_and_most() {
        Some(bounds) => {
            let mut values = vec![numbers.bits as u8];
            values.extend(numbers.finish());
            chunk.dictionary(&dictionary)?;
            chunk.data(levels, &values, Encoding::RLE_DICTIONARY)?;
            chunk.finish(Some(bounds))
        }
        None => {
            chunk.data(levels, &[], Encoding::PLAIN)?;
            chunk.finish(None)
        }
    }
}

/// A column of which no row has a value.
pub(super) fn empty_chunk(
    column: ColumnDescPtr,
    rows: usize,
    level: i32,
) -> Result<Chunk, ParquetError> {
    let mut present = Hybrid::new(1);
    present.put(0, rows);
    let mut chunk = Pages::new(column, level, rows, rows);
    chunk.data(present.finish(), &[], Encoding::PLAIN)?;
    chunk.finish(None)
}

/// Each text once, as Parquet's plain encoding has it.
#[derive(Default)]
struct Dictionary<'a> {
    numbers: HashMap<Symbol, u32>,
    plain: Vec<u8>,
    bounds: Option<(&'a str, &'a str)>,
}

impl<'a> Dictionary<'a> {
    fn number(&mut self, symbol: Symbol, text: &'a str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(symbol).or_insert_with(|| {
            self.plain.extend((text.len() as u32).to_le_bytes());
            self.plain.extend(text.as_bytes());
            let (least, most) = self.bounds.unwrap_or((text, text));
            self.bounds = Some((least.min(text), most.max(text)));
            next
        })
    }

    /// Bits of the largest number; one at least, since not every reader knows none.
    fn bits(&self) -> u32 {
        let largest = (self.numbers.len() as u32).saturating_sub(1);
        (u32::BITS - largest.leading_zeros()).max(1)
    }

    fn least_and_most(&self) -> Option<(&'a str, &'a str)> {
        self.bounds
    }
}

/// Parquet's hybrid of runs and packed numbers.
struct Hybrid {
    bits: u32,
    out: Vec<u8>,
    /// Numbers that make no run; packed eight at a time.
    loose: Vec<u32>,
}

impl Hybrid {
    fn new(bits: u32) -> Hybrid {
        Hybrid { bits, out: Vec::new(), loose: Vec::new() }
    }

    fn put(&mut self, value: u32, length: usize) {
        // Packed numbers come in eights: what is begun is filled up first.
        let filling = (self.loose.len().next_multiple_of(8) - self.loose.len()).min(length);
        self.loose.extend(std::iter::repeat_n(value, filling));
        let left = length - filling;
        if left < 8 {
            self.loose.extend(std::iter::repeat_n(value, left));
            return;
        }
        self.pack();
        self.varint((left as u64) << 1);
        let bytes = self.bits.div_ceil(8) as usize;
        self.out.extend(value.to_le_bytes().iter().take(bytes));
    }

    fn pack(&mut self) {
        if self.loose.is_empty() {
            return;
        }
        let eights = self.loose.len().div_ceil(8);
        self.varint((eights as u64) << 1 | 1);
        let mut loose = std::mem::take(&mut self.loose);
        loose.resize(eights * 8, 0);
        let (mut held, mut bits) = (0_u64, 0);
        for value in loose {
            held |= u64::from(value) << bits;
            bits += self.bits;
            while bits >= 8 {
                self.out.push(held as u8);
                held >>= 8;
                bits -= 8;
            }
        }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn finish(mut self) -> Vec<u8> {
        self.pack();
        self.out
    }
}

/// The pages of one chunk.
struct Pages {
    column: ColumnDescPtr,
    level: i32,
    rows: usize,
    missing: usize,
    sink: TrackedWrite<Vec<u8>>,
    dictionary_at: Option<i64>,
    data_at: i64,
    plain_bytes: usize,
    encodings: Vec<Encoding>,
}

impl Pages {
    fn new(column: ColumnDescPtr, level: i32, rows: usize, missing: usize) -> Pages {
        Pages {
            column,
            level,
            rows,
            missing,
            sink: TrackedWrite::new(Vec::new()),
            dictionary_at: None,
            data_at: 0,
            plain_bytes: 0,
            encodings: vec![Encoding::RLE],
        }
    }

    fn compress(&self, bytes: &[u8]) -> Result<Vec<u8>, ParquetError> {
        zstd::bulk::compress(bytes, self.level).map_err(|e| ParquetError::General(e.to_string()))
    }

    fn write(&mut self, page: Page, plain_bytes: usize) -> Result<i64, ParquetError> {
        let page = CompressedPage::new(page, plain_bytes);
        let written = SerializedPageWriter::new(&mut self.sink).write_page(page)?;
        self.plain_bytes += written.uncompressed_size;
        Ok(written.offset as i64)
    }

    fn dictionary(&mut self, dictionary: &Dictionary<'_>) -> Result<(), ParquetError> {
        let page = Page::DictionaryPage {
            buf: self.compress(&dictionary.plain)?.into(),
            num_values: dictionary.numbers.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        self.encodings.push(Encoding::PLAIN);
        self.dictionary_at = Some(self.write(page, dictionary.plain.len())?);
        Ok(())
    }

    fn data(
        &mut self,
        levels: Vec<u8>,
        values: &[u8],
        encoding: Encoding,
    ) -> Result<(), ParquetError> {
        let levels_bytes = levels.len();
        let mut buffer = levels;
        match values {
            [] => {}
            values => buffer.extend(self.compress(values)?),
        }
        let page = Page::DataPageV2 {
            buf: buffer.into(),
            num_values: self.rows as u32,
            encoding,
            num_nulls: self.missing as u32,
            num_rows: self.rows as u32,
            def_levels_byte_len: levels_bytes as u32,
            rep_levels_byte_len: 0,
            is_compressed: !values.is_empty(),
            statistics: None,
        };
        self.encodings.push(encoding);
        self.data_at = self.write(page, levels_bytes + values.len())?;
        Ok(())
    }

    fn finish(self, bounds: Option<(&str, &str)>) -> Result<Chunk, ParquetError> {
        let length = self.sink.bytes_written();
        let bytes = Bytes::from(self.sink.into_inner()?);
        let mut metadata = ColumnChunkMetaData::builder(self.column)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(self.level)?))
            .set_encodings(self.encodings)
            .set_total_compressed_size(length as i64)
            .set_total_uncompressed_size(self.plain_bytes as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(self.data_at)
            .set_dictionary_page_offset(self.dictionary_at);
        if let Some((least, most)) = bounds {
            let (least, most) = (ByteArray::from(least), ByteArray::from(most));
            let missing = Some(self.missing as u64);
            let bounds = ValueStatistics::new(Some(least), Some(most), None, missing, false);
            metadata = metadata.set_statistics(Statistics::ByteArray(bounds));
        }
        let close = ColumnCloseResult {
            bytes_written: length as u64,
            rows_written: self.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok(Chunk { bytes, close })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_runs_and_short_ones_are_packed() {
        let mut runs = Hybrid::new(3);
        runs.put(5, 300);
        // 300 × 5: the header is 600 as a varint, the value one byte.
        assert_eq!(runs.finish(), [0xd8, 0x04, 5]);
        let mut packed = Hybrid::new(3);
        (0..8).for_each(|value| packed.put(value, 1));
        // Parquet's own example of eight numbers of three bits.
        assert_eq!(packed.finish(), [3, 0x88, 0xc6, 0xfa]);
        let mut both = Hybrid::new(1);
        both.put(1, 2);
        both.put(0, 20);
        // Two ones and six zeros fill eight; the fourteen zeros left are a run.
        assert_eq!(both.finish(), [3, 0b11, 28, 0]);
    }
}
