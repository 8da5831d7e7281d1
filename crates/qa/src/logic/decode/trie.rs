//! A set of byte strings, walked byte by byte.

/// A set of byte strings.
///
/// ```
/// use wherefore::logic::decode::Trie;
/// let trie = Trie::new(["won", "wore"]);
/// let at = "wo".bytes().try_fold(Trie::ROOT, |at, byte| trie.next(at, byte)).unwrap();
/// assert!(!trie.is_end(at));
/// assert!(trie.is_end(trie.next(at, b'n').unwrap()));
/// assert_eq!(trie.next(at, b'x'), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trie {
    /// Children of each node, sorted by byte.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<(u8, u32)>,
    is_end: bool,
}

impl Trie {
    /// Where every walk begins.
    pub const ROOT: u32 = 0;

    /// The set of these strings.
    pub fn new<B: AsRef<[u8]>>(strings: impl IntoIterator<Item = B>) -> Self {
        let mut trie = Self {
            nodes: vec![Node::default()],
        };
        for string in strings {
            let mut at = Self::ROOT as usize;
            for &byte in string.as_ref() {
                at = match trie.nodes[at].children.binary_search_by_key(&byte, |c| c.0) {
                    Ok(found) => trie.nodes[at].children[found].1 as usize,
                    Err(place) => {
                        let new = trie.nodes.len();
                        let id = u32::try_from(new).expect("names have fewer than 2^32 bytes");
                        trie.nodes[at].children.insert(place, (byte, id));
                        trie.nodes.push(Node::default());
                        new
                    }
                };
            }
            trie.nodes[at].is_end = true;
        }
        trie
    }

    /// The node after a byte, if a string goes on so.
    pub fn next(&self, node: u32, byte: u8) -> Option<u32> {
        let children = &self.nodes.get(node as usize)?.children;
        let found = children.binary_search_by_key(&byte, |c| c.0).ok()?;
        Some(children[found].1)
    }

    /// Whether a string ends here.
    pub fn is_end(&self, node: u32) -> bool {
        self.nodes.get(node as usize).is_some_and(|n| n.is_end)
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1 && !self.is_end(Self::ROOT)
    }

    pub(super) fn children(&self, node: u32) -> &[(u8, u32)] {
        self.nodes.get(node as usize).map_or(&[], |n| &n.children)
    }
}
