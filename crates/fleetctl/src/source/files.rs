//! Unit files on disk.

use std::path::{Path, PathBuf};

use hyperfleet_fleet_model::unit::Options;

use super::{SourceError, UnitArgument};

/// The text for a unit, and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// A local file, or the name of a stored template.
    pub path: PathBuf,
    pub options: Options,
}

/// The local file of a unit, or of its template; `None` if there is neither.
///
/// # Errors
/// The file cannot be read, or is no unit file.
pub(crate) fn local_file(argument: &UnitArgument) -> Result<Option<Source>, SourceError> {
    let candidates = [Some(argument.path.clone()), argument.template_path()];
    for path in candidates.into_iter().flatten() {
        if let Some(options) = read_file(&path)? {
            return Ok(Some(Source { path, options }));
        }
    }
    Ok(None)
}

/// The options of a file; `None` if it does not exist.
///
/// # Errors
/// The file cannot be read, or is no unit file.
pub(crate) fn read_file(path: &Path) -> Result<Option<Options>, SourceError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => {
            let path = path.to_owned();
            return Err(SourceError::File { path, cause });
        }
    };
    let options = Options::parse(&bytes).map_err(|cause| SourceError::Options {
        name: path.display().to_string(),
        cause,
    })?;
    Ok(Some(options))
}
