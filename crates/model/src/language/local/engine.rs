//! What a file is run by.

use crate::Result;

/// What runs the decoder, and remembers what it has read.
pub(super) trait Engine: Send {
    /// What was read so far.
    fn tokens(&self) -> &[u32];

    /// Forgets all from this token on.
    fn truncate(&mut self, length: usize);

    /// Reads tokens after those it remembers; the logits of what follows the last one. After an
    /// error all is to be forgotten.
    fn read_on(&mut self, tokens: &[u32]) -> Result<Vec<f32>>;
}
