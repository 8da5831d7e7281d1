//! Which service files the user trusts.
//!
//! A service file says where questions are sent, and which environment variables go along. It may
//! lie in a folder that somebody else made, so it counts only once the user has agreed: for one
//! command ([`Trust::Given`]), or for good, in a list among the user's own settings. The list holds
//! the file's place and the SHA-256 of its content; a file that was changed or moved asks again.
//!
//! ```toml
//! # ~/.config/wherefore/trusted.toml
//! [[service]]
//! file = "/home/me/films/service.toml"
//! sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//! ```

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::ServiceConfig;
use crate::error::{Error, Result};

/// The longest file that is read, in bytes: lists of relations are long.
const LONGEST_FILE: u64 = 64 << 20;

/// Whether the user trusts a service file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Only if it is on the user's list.
    #[default]
    Recorded,
    /// The user trusts it for this command.
    Given,
}

/// The user's list of service files.
#[derive(Debug)]
pub struct TrustedServices {
    /// Where the list is kept; nowhere if the user has no place for settings.
    path: Option<PathBuf>,
    list: List,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    service: Vec<Trusted>,
}

/// A service file that is trusted as long as its content is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    /// The file, by its full path.
    pub file: PathBuf,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
}

impl TrustedServices {
    /// The list of the user who runs this.
    pub fn of_user() -> Result<Self> {
        Self::read(user_settings().map(|folder| folder.join("wherefore/trusted.toml")))
    }

    /// The list in this file.
    pub fn at(path: &Path) -> Result<Self> {
        Self::read(Some(path.to_owned()))
    }

    fn read(path: Option<PathBuf>) -> Result<Self> {
        let text = match path.as_deref().map(fs::read_to_string) {
            None => String::new(),
            Some(Ok(text)) => text,
            Some(Err(e)) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Some(Err(e)) => return Err(Error::io("read", path.unwrap_or_default())(e)),
        };
        let list = toml::from_str(&text).map_err(|e| Error::BadTrustList {
            path: path.clone().unwrap_or_default(),
            reason: e.message().to_owned(),
        })?;
        Ok(Self { path, list })
    }

    /// Where the list is kept.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The files that are trusted.
    pub fn services(&self) -> &[Trusted] {
        &self.list.service
    }

    fn trusts(&self, found: &Trusted) -> bool {
        self.list.service.contains(found)
    }

    /// Adds a service file, or that of a folder, with its current content. Returns its
    /// configuration.
    pub fn trust(&mut self, name: &Path) -> Result<ServiceConfig> {
        let file = service_file(name).ok_or_else(|| Error::BadService {
            name: name.display().to_string(),
            reason: "there is no service file to trust".into(),
        })?;
        let (config, found) = read(&file)?;
        self.list.service.retain(|known| known.file != found.file);
        self.list.service.push(found);
        self.write()?;
        Ok(config)
    }

    /// Removes a folder or file from the list. Returns whether it was listed.
    pub fn revoke(&mut self, name: &Path) -> Result<bool> {
        let file = service_file(name).unwrap_or_else(|| name.to_owned());
        let full = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
        let before = self.list.service.len();
        self.list
            .service
            .retain(|known| known.file != full && known.file != file);
        let gone = self.list.service.len() < before;
        if gone {
            self.write()?;
        }
        Ok(gone)
    }

    /// Replaces the list in one step. Only the user can read it.
    fn write(&self) -> Result<()> {
        let Some(path) = &self.path else {
            return Err(Error::BadTrustList {
                path: "trusted.toml".into(),
                reason: "the user has no folder for settings".into(),
            });
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        crate::private::create_folder(folder)?;
        let text = toml::to_string(&self.list).map_err(|e| Error::BadTrustList {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        let temporary = path.with_extension(format!("toml.{}", std::process::id()));
        let mut file = crate::private::create_file(&temporary)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(Error::io("write", &temporary))?;
        fs::rename(&temporary, path).map_err(Error::io("rename", &temporary))
    }
}

impl ServiceConfig {
    /// The service with a name: a URL, a TOML file, or the folder of a label index. `None` if it is
    /// none of these.
    ///
    /// # Errors
    /// [`Error::Untrusted`] for a file that the user has not trusted: it may come from somebody
    /// else. A URL needs no trust, because the user typed it and no secrets are sent.
    pub fn named(name: &str, trust: Trust) -> Result<Option<Self>> {
        // other schemes are refused when it is opened
        if name.contains("://") {
            return Ok(Some(Self::at(name)));
        }
        service_file(Path::new(name))
            .map(|file| read_trusted(&file, trust))
            .transpose()
    }
}

/// The file that describes a service: the named file, or the one in a label index folder. `None` if
/// the name is neither.
fn service_file(name: &Path) -> Option<PathBuf> {
    let inside = name.join("service.toml");
    if name.extension().is_some_and(|e| e == "toml") && name.is_file() {
        Some(name.to_owned())
    } else {
        // even a broken link there means that the folder is not a plain graph
        inside.symlink_metadata().is_ok().then_some(inside)
    }
}

/// Reads a trusted service file; an error with its host and variables if it is not trusted.
fn read_trusted(file: &Path, trust: Trust) -> Result<ServiceConfig> {
    let (config, found) = read(file)?;
    if trust == Trust::Recorded && !TrustedServices::of_user()?.trusts(&found) {
        return Err(Error::Untrusted {
            file: file.to_owned(),
            host: config.host(),
            variables: config.variables(),
        });
    }
    Ok(config)
}

/// A service file and its entry in a list, both from one reading.
fn read(file: &Path) -> Result<(ServiceConfig, Trusted)> {
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(LONGEST_FILE + 1).read_to_end(&mut bytes))
        .map_err(Error::io("read", file))?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(Error::BadService {
            name: file.display().to_string(),
            reason: format!("its file is longer than {LONGEST_FILE} bytes"),
        });
    }
    let sha256 = Sha256::digest(&bytes);
    let sha256 = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    let full = fs::canonicalize(file).map_err(Error::io("read", file))?;
    let config = ServiceConfig::parsed(&bytes, file)?;
    Ok((config, Trusted { file: full, sha256 }))
}

/// The user's folder for settings.
fn user_settings() -> Option<PathBuf> {
    std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(std::env::home_dir()?.join(".config")))
        .filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_for_one_file_with_one_content() {
        let folder = tempfile::tempdir().unwrap();
        let graph = folder.path().join("films");
        fs::create_dir(&graph).unwrap();
        let file = graph.join("service.toml");
        fs::write(&file, "url = \"http://good.example/sparql\"\n").unwrap();
        let place = folder.path().join("settings/trusted.toml");
        let mut list = TrustedServices::at(&place).unwrap();
        assert!(list.services().is_empty());
        assert_eq!(list.trust(&graph).unwrap().host(), "good.example");
        let again = TrustedServices::at(&place).unwrap();
        assert!(again.trusts(&read(&file).unwrap().1));
        // another content, and another place
        fs::write(
            &file,
            "url = \"http://evil.example/\"\ntoken_env = \"KEY\"\n",
        )
        .unwrap();
        assert!(!again.trusts(&read(&file).unwrap().1));
        fs::write(&file, "url = \"http://good.example/sparql\"\n").unwrap();
        let other = folder.path().join("other.toml");
        fs::copy(&file, &other).unwrap();
        assert!(!again.trusts(&read(&other).unwrap().1));
        assert!(again.trusts(&read(&file).unwrap().1));
        list.trust(&file).unwrap();
        assert_eq!(list.services().len(), 1);
        assert!(list.revoke(&graph).unwrap() && !list.revoke(&graph).unwrap());
        let again = TrustedServices::at(&place).unwrap();
        assert!(!again.trusts(&read(&file).unwrap().1));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&place), 0o600);
            assert_eq!(mode(place.parent().unwrap()), 0o700);
        }
    }

    #[test]
    fn every_url_is_a_service_and_never_shown_as_a_folder() {
        let named = |name| ServiceConfig::named(name, Trust::Recorded).unwrap();
        assert!(named("movies").is_none());
        let error = named("ftp://me:hunter2@host").unwrap().resolved();
        let error = error.unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_list_that_does_not_parse_trusts_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("trusted.toml");
        fs::write(&place, "service = 1").unwrap();
        let error = TrustedServices::at(&place).unwrap_err();
        assert!(error.to_string().contains("trusted.toml"), "{error}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn the_host_and_variables_of_a_file_are_listed() {
        let text = "url = \"https://user@evil.example:99/x?y\"\nuser_env = \"A\"\n\
                    password_env = \"B\"\n[headers]\nx = \"${C}-${D}\"\n";
        let config = ServiceConfig::parsed(text.as_bytes(), Path::new("x.toml")).unwrap();
        assert_eq!(config.host(), "evil.example:99");
        assert_eq!(config.variables(), ["A", "B", "C", "D"]);
    }
}
