//! Answers without a language model: what the retriever's logical form gives.
//!
//! ```text
//! answers    = the entities that the form matches, or the number, yes or no that it comes to
//! rationale  = the triples that made each match; of a number, those of all that was counted or
//!              added up; of a yes, those of a witness; of a no, what the graph says instead
//! confidence = the form's, less for what is reached through the form's own entities alone
//! ```

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use wherefore_graph::{Graph, Triple};

use super::{Candidate, Computed, Conclusion, Reasoner, RunForm};
use crate::error::Result;
use crate::organize::Context;
use crate::question::Question;

/// Settings of [`LogicalForm`]: there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogicalFormConfig {}

/// Answers with what a form gives.
#[derive(Clone, Debug, Default)]
pub struct LogicalForm {}

impl LogicalForm {
    /// A reasoner with these settings.
    pub fn new(_config: LogicalFormConfig) -> Self {
        Self {}
    }
}

impl Reasoner for LogicalForm {
    fn reason(
        &self,
        _question: &Question,
        context: &Context,
        _graph: &dyn Graph,
    ) -> Result<Conclusion> {
        let selection = &context.selection;
        let Some(form) = &selection.form else {
            return Ok(Conclusion {
                reason: Some("no logical form of the question gives anything".into()),
                ..Conclusion::default()
            });
        };
        let told = Conclusion {
            written_forms: form.written.clone(),
            retrieved: form.retrieved.clone(),
            ..Conclusion::default()
        };
        if form.form.is_empty() {
            return Ok(Conclusion {
                reason: Some("none of the logical forms that were written gives anything".into()),
                ..told
            });
        }
        let triples = selection.triples.iter().enumerate();
        let place: HashMap<Triple, usize> = triples.map(|(i, (t, _))| (*t, i)).collect();
        let path = |evidence: &[Triple]| -> Vec<usize> {
            evidence
                .iter()
                .filter_map(|t| place.get(t).copied())
                .collect()
        };
        let mut conclusion = Conclusion {
            form: Some(RunForm {
                form: form.form.clone(),
                english: form.english.clone(),
                sparql: form.sparql.clone(),
                table: form.table.clone(),
            }),
            ..told
        };
        if let Some((name, id)) = &form.computed {
            let counted = form.answers.iter().flat_map(|a| &a.evidence);
            let grounds: Vec<Triple> = counted.chain(&form.grounds).copied().collect();
            let mut path = path(&grounds);
            path.sort_unstable();
            path.dedup();
            conclusion.computed.push(Computed {
                name: name.clone(),
                id: id.clone(),
                confidence: form.confidence,
                path,
            });
            return Ok(conclusion);
        }
        conclusion.answers = form
            .answers
            .iter()
            .map(|answer| Candidate {
                entity: answer.entity,
                confidence: answer.confidence,
                path: path(&answer.evidence),
            })
            .collect();
        Ok(conclusion)
    }
}
