//! Part of Wherefore.
