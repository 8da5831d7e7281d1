//! What each layer of GNN2R did, for people.

use serde::Serialize;

/// Every layer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// One picture for each layer.
    pub layers: Vec<LayerPicture>,
}

/// One layer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LayerPicture {
    /// Head, relation and tail of each triple of the rationale, how much of what the tail hears
    /// comes over it, and how much of what the head hears.
    pub attention: Vec<([String; 3], f32, f32)>,
    /// The question and the entities in the two directions in which they spread most.
    pub places: Vec<Place>,
}

/// Something in a picture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Place {
    /// Its label.
    pub name: String,
    /// Where it stands.
    pub at: (f32, f32),
    /// What it is.
    pub role: Role,
}

/// What stands in a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The question.
    Question,
    /// A topic.
    Topic,
    /// An answer.
    Answer,
    /// A candidate that is no answer.
    Candidate,
    /// Anything else.
    #[default]
    Other,
}
