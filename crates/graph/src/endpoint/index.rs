//! A label index: the names of a service's entities, streamed into a graph folder of their own.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::config::ServiceConfig;
use super::{LONGEST_LABEL, Service, summary};
use crate::error::{Error, Result};
use crate::load::{Input, LoadOptions, LoadProgress, load};

/// Rows per request (guess).
const PAGE: usize = 500_000;

/// Counts of a label index.
#[derive(Clone, Debug)]
pub struct LabelReport {
    /// Labels and aliases.
    pub labels: u64,
    /// Entities that have some.
    pub entities: u64,
    /// Relations that were listed.
    pub relations: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Bytes of the index on disk.
    pub bytes: u64,
}

/// Streams all labels and aliases of a service into a graph folder, and writes `service.toml` into
/// it, which opens the service with the index. `on_progress` gets the number of labels so far.
///
/// Labels are read predicate by predicate and page by page, in the language of the configuration
/// or in none; they go to the disk as they come.
pub fn index_labels(
    mut config: ServiceConfig,
    out: &Path,
    memory: usize,
    replace: bool,
    on_progress: &(dyn Fn(u64) + Sync),
    progress: &(dyn Fn(LoadProgress) + Sync),
) -> Result<LabelReport> {
    config.index = None;
    let given = config.clone();
    let service = Service::open(config)?;
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let file = parent.join(format!(".{name}.labels.nt"));
    let written = write_labels(&service, &file, on_progress);
    let done = written.and_then(|labels| {
        if labels == 0 {
            return Err(Error::BadService {
                name: service.config.url.clone(),
                reason: "it has no labels; set the label predicates as `labels` in its file".into(),
            });
        }
        let options = LoadOptions {
            labels: service.config.labels.clone(),
            aliases: service.config.aliases.clone(),
            language: service.config.language.clone(),
            memory,
            replace,
            ..LoadOptions::default()
        };
        Ok((
            labels,
            load(&[Input::File(file.clone())], out, &options, progress)?,
        ))
    });
    // the labels are in the index now, or of no use
    let _ = std::fs::remove_file(&file);
    let (labels, report) = done?;
    let settings = ServiceConfig {
        index: Some(".".into()),
        relations: service.relations.iris.clone(),
        labels: service.config.labels.clone(),
        aliases: service.config.aliases.clone(),
        graph: service.config.graph.clone(),
        ..given
    };
    // what was counted is of the former index
    match std::fs::remove_file(out.join(summary::FILE)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io("remove", &out.join(summary::FILE))(error));
        }
        _ => {}
    }
    let path = out.join("service.toml");
    let text = toml::to_string(&settings).map_err(|e| Error::BadService {
        name: settings.url.clone(),
        reason: e.to_string(),
    })?;
    std::fs::write(&path, text).map_err(Error::io("write", &path))?;
    Ok(LabelReport {
        labels,
        entities: report.counts.entities - report.counts.literals,
        relations: service.relations.iris.len() as u64,
        requests: service.requests(),
        bytes: report.bytes,
    })
}

fn write_labels(service: &Service, path: &Path, on_progress: &(dyn Fn(u64) + Sync)) -> Result<u64> {
    let file = File::create(path).map_err(Error::io("create", path))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut labels = 0;
    let language = &service.config.language;
    for predicate in service.config.labels.iter().chain(&service.config.aliases) {
        let mut offset = 0;
        loop {
            let query = format!(
                "SELECT ?e ?l WHERE {{ ?e <{predicate}> ?l FILTER(isIRI(?e) && isLiteral(?l) && \
                 (LANG(?l) = \"\" || LANGMATCHES(LANG(?l), \"{language}\"))) }} \
                 LIMIT {PAGE} OFFSET {offset}"
            );
            let mut rows = 0usize;
            let most = service.client.each_row(&query, |_, row| {
                let [Some(e), Some(l)] = row.as_slice() else {
                    return Err(service
                        .client
                        .bad_reply("a row of labels has no `?e` and `?l`"));
                };
                rows += 1;
                let oxrdf::Term::Literal(label) = l else {
                    return Ok(rows < PAGE);
                };
                // nobody is called so
                if label.value().len() <= LONGEST_LABEL {
                    labels += 1;
                    writeln!(file, "{e} <{predicate}> {l} .").map_err(Error::io("write", path))?;
                }
                Ok(rows < PAGE)
            })?;
            on_progress(labels);
            offset += rows;
            // fewer than were asked for is the end, unless the service cuts before
            let page = most.map_or(PAGE, |most: usize| most.min(PAGE));
            if rows < page {
                break;
            }
        }
    }
    file.flush().map_err(Error::io("write", path))?;
    Ok(labels)
}
