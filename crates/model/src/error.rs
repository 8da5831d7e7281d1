//! What can go wrong with a model, in words a user can act on.

use std::io;
use std::path::PathBuf;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong with a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was attempted: `read`, `write`, `create` …
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },

    /// A name that is neither built in, nor a folder, nor a model that was added.
    #[error("there is no model `{name}` here")]
    UnknownModel {
        /// The name as given.
        name: String,
    },

    /// A name that cannot be the name of a folder.
    #[error("`{name}` cannot name a model: use letters, digits, `-`, `_` and `.`")]
    BadName {
        /// The name as given.
        name: String,
    },

    /// A model of that name was added before.
    #[error("the model `{name}` is there already, in `{path}`")]
    ModelExists {
        /// The name.
        name: String,
        /// Its folder.
        path: PathBuf,
    },

    /// A model folder lacks a file.
    #[error("model folder `{folder}` has no `{file}`")]
    MissingFile {
        /// The folder.
        folder: PathBuf,
        /// What it should hold.
        file: &'static str,
    },

    /// A configuration file that does not say what it must.
    #[error("model configuration `{path}` is not usable: {reason}")]
    BadConfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// An architecture for which there is no network here.
    #[error("model `{path}` is of the family `{found}`, and known here are {known}")]
    UnknownFamily {
        /// The configuration file.
        path: PathBuf,
        /// The family it names.
        found: String,
        /// The families that can be loaded.
        known: &'static str,
    },

    /// A tokenizer file that is cut short or of another kind.
    #[error("tokenizer `{path}` is damaged or of another kind: {reason}")]
    BadTokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A weights file that is cut short or of another kind.
    #[error("weights `{path}` are damaged or of another kind: {reason}")]
    BadWeights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// An adapter that was trained around other weights.
    #[error("checkpoint `{path}` was trained around `{wanted}`, and `{given}` is `{found}`")]
    OtherBase {
        /// The checkpoint.
        path: PathBuf,
        /// The model that it was made for.
        wanted: String,
        /// The file that was given.
        given: String,
        /// The model in it.
        found: String,
    },

    /// A tensor that the configuration promises and the weights lack.
    #[error("weights `{path}` have no tensor `{tensor}` of shape {wanted:?}")]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// Its name.
        tensor: String,
        /// The shape it should have.
        wanted: Vec<usize>,
    },

    /// A tensor of another shape than the configuration promises.
    #[error("tensor `{tensor}` of `{path}` has shape {found:?}, and {wanted:?} was expected")]
    TensorShape {
        /// The file.
        path: PathBuf,
        /// Its name.
        tensor: String,
        /// The shape the configuration asks for.
        wanted: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },

    /// A tokenizer that gives ids for which the weights have no row.
    #[error("tokenizer `{path}` gives token {token}, and the weights have {rows} rows")]
    TokenOutside {
        /// The tokenizer file.
        path: PathBuf,
        /// The token id.
        token: u32,
        /// Rows of the embedding.
        rows: usize,
    },

    /// A static table that is cut short or of another kind.
    #[error("static table `{path}` is damaged: {reason}")]
    BadTable {
        /// The file, or `built in`.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// An option outside its range.
    #[error("`{option}` is {given}, and must be {wanted}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// What was given.
        given: String,
        /// What it may be.
        wanted: String,
    },

    /// The hub did not give the model.
    #[error("cannot fetch `{repository}` from the model hub: {reason}")]
    Hub {
        /// `owner/name`.
        repository: String,
        /// What the hub or the network said.
        reason: String,
    },

    /// A tokenizer refused a text.
    #[error("the tokenizer of `{model}` refused a text: {reason}")]
    Tokenize {
        /// The model.
        model: String,
        /// What it said.
        reason: String,
    },

    /// A subgraph without triples: nothing to score.
    #[error("the subgraph has no triple")]
    EmptySubgraph,

    /// An id for which there is no row.
    #[error("{what} {id} is outside: there are {count}")]
    IdOutside {
        /// What the id stands for.
        what: &'static str,
        /// The id.
        id: u32,
        /// How many there are.
        count: usize,
    },

    /// A vector or list of another length.
    #[error("the {what} has {given} numbers, and {wanted} were expected")]
    Dimension {
        /// What was given.
        what: &'static str,
        /// The length it should have.
        wanted: usize,
        /// The length it has.
        given: usize,
    },

    /// NaN or infinity where a number was expected.
    #[error("the {what} holds a number that is not finite")]
    NotFinite {
        /// Where.
        what: String,
    },

    /// A tensor that the network lacks, or needs in another shape.
    #[error("tensor `{tensor}` does not fit the network: {reason}")]
    Parameter {
        /// Its name.
        tensor: String,
        /// What is wrong with it.
        reason: String,
    },

    /// Training left the finite numbers.
    #[error("the {what} of step {step} is not finite")]
    Diverged {
        /// The loss, or the gradient of a tensor.
        what: String,
        /// The step, from 1.
        step: u64,
    },

    /// There is no card to compute on.
    #[error("no NVIDIA card can be used")]
    NoCuda,

    /// A checkpoint folder that does not say what it must.
    #[error("checkpoint `{path}` is not usable: {reason}")]
    BadCheckpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A checkpoint of another method.
    #[error("checkpoint `{path}` is of the method `{found}`, and `{wanted}` was asked for")]
    OtherMethod {
        /// The configuration file.
        path: PathBuf,
        /// The method asked for.
        wanted: String,
        /// The method in the file.
        found: String,
    },

    /// A folder for a checkpoint that holds something else.
    #[error("`{path}` holds {holds}, which a training would replace")]
    FolderTaken {
        /// The folder.
        path: PathBuf,
        /// What is in it.
        holds: String,
    },

    /// A checkpoint that was trained on the vectors of another encoder.
    #[error(
        "checkpoint `{path}` was trained with `{wanted}` ({wanted_dim} numbers), \
         and `{given}` gives {given_dim}"
    )]
    OtherEncoder {
        /// The configuration file.
        path: PathBuf,
        /// The encoder it was trained with.
        wanted: String,
        /// Numbers in that encoder's vectors.
        wanted_dim: usize,
        /// The encoder at hand.
        given: String,
        /// Numbers in its vectors.
        given_dim: usize,
    },

    /// A server that gives no reply.
    #[error("the language model server `{url}` cannot be reached: {reason}")]
    ServerUnreachable {
        /// Its base URL.
        url: String,
        /// What the network said.
        reason: String,
    },

    /// A server that does not do what it was asked.
    #[error("the language model server `{url}` refused with status {status}: {reason}")]
    ServerRefused {
        /// Its base URL.
        url: String,
        /// The status of its reply.
        status: u16,
        /// What it said.
        reason: String,
        /// The environment variable that holds the key.
        key_env: String,
    },

    /// A reply that is no completion.
    #[error("the language model server `{url}` sent no whole completion: {reason}")]
    BadReply {
        /// Its base URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A script that does not parse or says nothing to a prompt.
    #[error("the script `{path}` cannot be used: {reason}")]
    BadScript {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A prompt that leaves no room for a completion.
    #[error("the prompt has {tokens} tokens, and the language model reads {context}")]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens that prompt and completion may have together.
        context: usize,
    },

    /// A GGUF file that is cut short or of another kind.
    #[error("language model `{path}` is damaged or of another kind: {reason}")]
    BadGguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A chat template that does not render.
    #[error("the chat template of `{path}` does not render: {reason}")]
    BadTemplate {
        /// The file that holds it.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A tensor operation failed: our own fault.
    #[error("a tensor operation failed")]
    Compute(#[from] candle_core::Error),
}

/// Refuses options of which one is 0.
pub(crate) fn at_least_one<const N: usize>(options: [(&'static str, usize); N]) -> Result<()> {
    match options.iter().find(|(_, given)| *given == 0) {
        Some((option, _)) => Err(Error::option(option, 0, "at least 1")),
        None => Ok(()),
    }
}

impl Error {
    /// An [`Error::BadOption`].
    pub(crate) fn option(
        option: &'static str,
        given: impl ToString,
        wanted: impl Into<String>,
    ) -> Self {
        Error::BadOption {
            option,
            given: given.to_string(),
            wanted: wanted.into(),
        }
    }

    /// For `map_err`: an [`Error::Io`] that names the path.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }

    /// The command or step that mends it, if the user can.
    pub fn hint(&self) -> Option<String> {
        const AGAIN: &str = "fetch the model again with `wherefore model add NAME --replace`, \
                             or copy its folder again";
        match self {
            Error::UnknownModel { name } if name.contains('/') => Some(format!(
                "fetch it with `wherefore model add {name}`, or check the path of the folder"
            )),
            Error::UnknownModel { name } => Some(format!(
                "fetch it with `wherefore model add {name}`, give the path of a model folder, \
                 or see `wherefore model list`"
            )),
            Error::ModelExists { .. } => {
                Some("add `--replace` to put the new one in its place".into())
            }
            Error::MissingFile { .. } => Some(format!(
                "a model folder holds `config.json`, `tokenizer.json` and `model.safetensors`; {AGAIN}"
            )),
            Error::BadTokenizer { .. }
            | Error::BadWeights { .. }
            | Error::MissingTensor { .. }
            | Error::TensorShape { .. }
            | Error::TokenOutside { .. } => Some(AGAIN.into()),
            Error::BadTable { .. } => {
                Some("make it again with `wherefore model distill TEACHER --out FILE`".into())
            }
            Error::EmptySubgraph => Some(
                "widen the neighbourhood (more hops or a larger budget), or name another topic"
                    .into(),
            ),
            Error::Diverged { .. } => Some(
                "the last good checkpoint is kept; train on with a smaller learning rate or \
                 stricter gradient clipping"
                    .into(),
            ),
            Error::NoCuda => Some(
                "leave `--device` out; cards are used by a program built with `--features cuda`"
                    .into(),
            ),
            Error::BadCheckpoint { .. } | Error::OtherMethod { .. } => Some(
                "train it again with `wherefore train METHOD --out CKPT`, or pass another".into(),
            ),
            Error::FolderTaken { .. } => {
                Some("pass a new folder as `--out`, or remove this one first".into())
            }
            Error::OtherEncoder { wanted, .. } => Some(format!(
                "pass the encoder it was trained with, `--encoder {wanted}`, or train it again"
            )),
            Error::OtherBase { .. } => Some(
                "name the file that it was trained with, as `llm` among the settings of \
                 `[retrieve]`, or train it again with `wherefore train amar --llm FILE.gguf`"
                    .into(),
            ),
            Error::ServerUnreachable { .. } => Some(
                "check that the server runs and that the URL is its base, as in \
                 `http://localhost:8080/v1#MODEL`"
                    .into(),
            ),
            Error::ServerRefused {
                status: 401 | 403,
                key_env,
                ..
            } => Some(format!(
                "put the key into the environment variable `{key_env}`"
            )),
            Error::ServerRefused { status: 404, .. } => Some(
                "check the model's name and the base URL, as in `http://localhost:8080/v1#MODEL`"
                    .into(),
            ),
            Error::ServerRefused { status: 429, .. } => {
                Some("wait, or allow more with `#MODEL?retries=N`".into())
            }
            Error::BadReply { .. } => {
                Some("check that the URL is the base of an OpenAI-compatible server".into())
            }
            Error::PromptTooLong { .. } => Some(
                "allow less evidence with `reason.evidence_tokens`, or use a model with a longer \
                 context"
                    .into(),
            ),
            Error::BadGguf { .. } => Some("download the file again, or use another".into()),
            Error::Hub { repository, .. } => Some(format!(
                "download the files of `{repository}` where the network allows it, and add the \
                 folder with `wherefore model add FOLDER`"
            )),
            _ => None,
        }
    }

    /// What went wrong as a short word that programs can rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Io { .. } => "io",
            Error::UnknownModel { .. } => "unknown-model",
            Error::BadName { .. } => "bad-name",
            Error::ModelExists { .. } => "model-exists",
            Error::MissingFile { .. } => "missing-file",
            Error::BadConfig { .. } => "bad-model-config",
            Error::UnknownFamily { .. } => "unknown-family",
            Error::BadTokenizer { .. } => "bad-tokenizer",
            Error::BadWeights { .. } => "bad-weights",
            Error::MissingTensor { .. } => "missing-tensor",
            Error::TensorShape { .. } => "tensor-shape",
            Error::TokenOutside { .. } => "token-outside",
            Error::BadTable { .. } => "bad-table",
            Error::BadOption { .. } => "bad-option",
            Error::Hub { .. } => "hub",
            Error::Tokenize { .. } => "tokenize",
            Error::EmptySubgraph => "empty-subgraph",
            Error::IdOutside { .. } => "id-outside",
            Error::Dimension { .. } => "dimension",
            Error::NotFinite { .. } => "not-finite",
            Error::Parameter { .. } => "parameter",
            Error::Diverged { .. } => "diverged",
            Error::NoCuda => "no-cuda",
            Error::BadCheckpoint { .. } => "bad-checkpoint",
            Error::OtherMethod { .. } => "other-method",
            Error::FolderTaken { .. } => "folder-taken",
            Error::OtherEncoder { .. } => "other-encoder",
            Error::OtherBase { .. } => "other-base",
            Error::ServerUnreachable { .. } => "server-unreachable",
            Error::ServerRefused { .. } => "server-refused",
            Error::BadReply { .. } => "bad-reply",
            Error::BadScript { .. } => "bad-script",
            Error::PromptTooLong { .. } => "prompt-too-long",
            Error::BadGguf { .. } => "bad-gguf",
            Error::BadTemplate { .. } => "bad-template",
            Error::Compute(_) => "compute",
        }
    }

    /// Whether the fault lies in our own code rather than in what the user gave us.
    pub fn is_internal(&self) -> bool {
        matches!(self, Error::Compute(_))
    }
}
