//! Unpacks the archive of the suites: xz around tar, files and folders only.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

const BLOCK: usize = 512;

pub(super) fn unpack(archive: &Path, out: &Path) -> io::Result<()> {
    let file = io::BufReader::new(std::fs::File::open(archive)?);
    let mut tar = Vec::new();
    liblzma::bufread::XzDecoder::new_multi_decoder(file).read_to_end(&mut tar)?;
    let mut at = 0;
    let mut long_name = None;
    while let Some(header) = tar.get(at..at + BLOCK) {
        if header.iter().all(|&byte| byte == 0) {
            break;
        }
        let size = octal(&header[124..136])?;
        let body = tar
            .get(at + BLOCK..at + BLOCK + size)
            .ok_or_else(|| broken("a file is cut short"))?;
        at += BLOCK + size.div_ceil(BLOCK) * BLOCK;
        match header[156] {
            b'L' => long_name = Some(text(body)),
            // metadata of the archive itself
            b'x' | b'g' => {}
            kind => {
                let name = long_name.take().unwrap_or_else(|| name(header));
                let path = out.join(inside(&name)?);
                match kind {
                    b'5' => std::fs::create_dir_all(path)?,
                    b'0' | 0 => {
                        if let Some(folder) = path.parent() {
                            std::fs::create_dir_all(folder)?;
                        }
                        std::fs::write(path, body)?;
                    }
                    _ => return Err(broken("neither a file nor a folder")),
                }
            }
        }
    }
    Ok(())
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn name(header: &[u8]) -> String {
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    match header[257..262] == *b"ustar" && !prefix.is_empty() {
        true => format!("{prefix}/{name}"),
        false => name,
    }
}

fn octal(field: &[u8]) -> io::Result<usize> {
    let text = text(field);
    usize::from_str_radix(text.trim(), 8).map_err(|_| broken("a size is no number"))
}

/// The path, if it stays inside of where it is unpacked.
fn inside(name: &str) -> io::Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            _ => return Err(broken("a path leads out of the archive")),
        }
    }
    Ok(path)
}
