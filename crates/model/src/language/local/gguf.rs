//! A GGUF file: what it says of itself, and its tensors.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{Content, Value};

use super::gguf_header;
use crate::{Error, Result};

/// An open file whose header was read.
pub(super) struct Gguf {
    pub(super) path: PathBuf,
    content: Content,
    reader: BufReader<File>,
    /// The family that the file names, and the beginning of its keys.
    pub(super) family: String,
}

impl Gguf {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("read", path))?;
        let mut reader = BufReader::new(file);
        gguf_header::check(&mut reader).map_err(|e| Error::BadGguf {
            path: path.into(),
            reason: e.to_string(),
        })?;
        let content = Content::read(&mut reader).map_err(|e| Error::BadGguf {
            path: path.into(),
            reason: first_line(&e),
        })?;
        let mut gguf = Self {
            path: path.into(),
            content,
            reader,
            family: String::new(),
        };
        gguf.family = gguf.text("general.architecture")?.to_owned();
        Ok(gguf)
    }

    pub(super) fn bad(&self, reason: impl Into<String>) -> Error {
        Error::BadGguf {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }

    fn missing(&self, key: &str) -> Error {
        self.bad(format!("there is no usable `{key}` in it"))
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Result<&str> {
        self.text_or_none(key).ok_or_else(|| self.missing(key))
    }

    pub(super) fn text_or_none(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number_or_none(&self, key: &str) -> Option<usize> {
        let value = self.value(key)?;
        let number = match *value {
            Value::I8(n) => i64::from(n),
            Value::I16(n) => i64::from(n),
            Value::I32(n) => i64::from(n),
            Value::I64(n) => n,
            _ => i64::try_from(value.to_u64().ok()?).ok()?,
        };
        usize::try_from(number).ok()
    }

    pub(super) fn flag_or_none(&self, key: &str) -> Option<bool> {
        self.value(key)?.to_bool().ok()
    }

    pub(super) fn float_or_none(&self, key: &str) -> Option<f32> {
        match *self.value(key)? {
            Value::F32(x) => Some(x),
            Value::F64(x) => Some(x as f32),
            _ => None,
        }
    }

    /// The family's own key: `llama.block_count`.
    pub(super) fn key(&self, rest: &str) -> String {
        format!("{}.{rest}", self.family)
    }

    /// A number of the family within bounds: files come from anywhere.
    pub(super) fn size(&self, rest: &str, most: usize) -> Result<usize> {
        let key = self.key(rest);
        self.number_or_none(&key)
            .filter(|n| (1..=most).contains(n))
            .ok_or_else(|| self.missing(&key))
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<&str>> {
        let list = self.list(key)?;
        list.iter()
            .map(|value| match value {
                Value::String(text) => Ok(text.as_str()),
                _ => Err(self.missing(key)),
            })
            .collect()
    }

    pub(super) fn list(&self, key: &str) -> Result<&[Value]> {
        match self.value(key) {
            Some(Value::Array(list)) => Ok(list),
            _ => Err(self.missing(key)),
        }
    }

    pub(super) fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// The tensor of this name, `[rows, columns]`.
    pub(super) fn matrix(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Arc<QTensor>> {
        self.matrix_on(name, rows, columns, &Device::Cpu)
    }

    /// The same, in a device's memory.
    pub(super) fn matrix_on(
        &mut self,
        name: &str,
        rows: usize,
        columns: usize,
        device: &Device,
    ) -> Result<Arc<QTensor>> {
        Ok(Arc::new(self.tensor(name, &[rows, columns], device)?))
    }

    /// The numbers of a tensor with one axis.
    pub(super) fn vector(&mut self, name: &str, length: usize) -> Result<Vec<f32>> {
        let tensor = self.tensor(name, &[length], &Device::Cpu)?;
        Ok(tensor.dequantize(&Device::Cpu)?.to_vec1()?)
    }

    pub(super) fn vector_or_none(&mut self, name: &str, length: usize) -> Result<Option<Vec<f32>>> {
        if self.has_tensor(name) {
            return self.vector(name, length).map(Some);
        }
        Ok(None)
    }

    fn tensor(&mut self, name: &str, shape: &[usize], device: &Device) -> Result<QTensor> {
        let Some(info) = self.content.tensor_infos.get(name) else {
            return Err(Error::MissingTensor {
                path: self.path.clone(),
                tensor: name.to_owned(),
                wanted: shape.to_vec(),
            });
        };
        if info.shape.dims() != shape {
            return Err(Error::TensorShape {
                path: self.path.clone(),
                tensor: name.to_owned(),
                wanted: shape.to_vec(),
                found: info.shape.dims().to_vec(),
            });
        }
        let offset = self.content.tensor_data_offset;
        info.read(&mut self.reader, offset, device)
            .map_err(|e| Error::BadGguf {
                path: self.path.clone(),
                reason: format!("tensor `{name}`: {}", first_line(&e)),
            })
    }

    /// A name for these weights: what they are called, and a hash of the header and of three
    /// stretches of the tensors.
    pub(super) fn identity(&mut self) -> Result<String> {
        const STRETCH: u64 = 1 << 20;
        let path = self.path.clone();
        let io = || Error::io("read", &path);
        let end = self.reader.seek(SeekFrom::End(0)).map_err(io())?;
        let data = self.content.tensor_data_offset.min(end);
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        hash.update(&end.to_le_bytes());
        let mut bytes = Vec::new();
        let last = end.saturating_sub(STRETCH).max(data);
        for (from, length) in [
            (0, data),
            (data, STRETCH),
            (data + (end - data) / 2, STRETCH),
            (last, STRETCH),
        ] {
            self.reader.seek(SeekFrom::Start(from)).map_err(io())?;
            bytes.clear();
            (&mut self.reader)
                .take(length)
                .read_to_end(&mut bytes)
                .map_err(io())?;
            hash.update(&bytes);
        }
        let name = self.text_or_none("general.name").unwrap_or("unnamed");
        Ok(format!("gguf:{name}:{:032x}", hash.digest128()))
    }
}

/// The beginning of an error: the rest may be a backtrace.
fn first_line(error: &candle_core::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}
