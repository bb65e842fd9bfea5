//! Sorted inputs into one sorted output, a bounded number of rows at a time.

use super::{Batch, Spec, Texts};

/// Where the next batch of an input comes from; `None` at its end.
pub(crate) type Source<'a, E> = Box<dyn FnMut(&mut Texts) -> Result<Option<Batch>, E> + Send + 'a>;

/// A merge under way. It holds one batch of each input and the rows of one row group.
pub(crate) struct Merge<'a, E> {
    inputs: Vec<Input<'a, E>>,
    texts: Texts,
    out: Batch,
}

struct Input<'a, E> {
    source: Source<'a, E>,
    batch: Batch,
    row: usize,
    ended: bool,
}

impl<'a, E> Merge<'a, E> {
    pub(crate) fn new(spec: &'static Spec, sources: Vec<Source<'a, E>>) -> Merge<'a, E> {
        let input = |source| Input { source, batch: Batch::new(spec), row: 0, ended: false };
        let inputs = sources.into_iter().map(input).collect();
        Merge { inputs, texts: Texts::default(), out: Batch::new(spec) }
    }

    /// Takes up to `rows` rows from the inputs. A full row group is handed out with the texts that
    /// its symbols stand for.
    pub(crate) fn step(
        &mut self,
        rows: usize,
        group_rows: usize,
        mut full: impl FnMut(&Batch, &Texts) -> Result<(), E>,
    ) -> Result<Progress, E> {
        for _ in 0..rows {
            self.refill()?;
            let Some(least) = self.least() else {
                if self.out.rows() > 0 {
                    full(&self.out, &self.texts)?;
                    self.out = Batch::new(self.out.spec);
                }
                return Ok(Progress::Done);
            };
            let Some(input) = self.inputs.get_mut(least) else { return Ok(Progress::Done) };
            let last = self.out.rows().wrapping_sub(1);
            let same = self.out.rows() > 0
                && self.out.compare(last, &input.batch, input.row, &self.texts).is_eq();
            if same {
                self.out.add_to_last(&input.batch, input.row);
            } else {
                if self.out.rows() >= group_rows {
                    full(&self.out, &self.texts)?;
                    self.out = Batch::new(self.out.spec);
                }
                self.out.push_from(&input.batch, input.row);
            }
            input.row += 1;
        }
        Ok(Progress::More)
    }

    fn refill(&mut self) -> Result<(), E> {
        for input in &mut self.inputs {
            while !input.ended && input.row >= input.batch.rows() {
                match (input.source)(&mut self.texts)? {
                    Some(batch) => (input.batch, input.row) = (batch, 0),
                    None => input.ended = true,
                }
            }
        }
        Ok(())
    }

    fn least(&self) -> Option<usize> {
        let live = (0..self.inputs.len())
            .filter(|&place| self.inputs.get(place).is_some_and(|input| !input.ended));
        live.min_by(|&left, &right| match (self.inputs.get(left), self.inputs.get(right)) {
            (Some(left), Some(right)) => {
                left.batch.compare(left.row, &right.batch, right.row, &self.texts)
            }
            _ => std::cmp::Ordering::Equal,
        })
    }
}

/// Whether a merge goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// There are rows left.
    More,
    /// All rows have been handed out.
    Done,
}
