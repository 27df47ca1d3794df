//! How a recording is opened.

use std::path::PathBuf;

use windvane_model::Surface;

/// Action for a line that cannot be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDamage {
    /// Report the line number and go on.
    #[default]
    Skip,
    /// Refuse the recording.
    Fail,
}

/// Options for opening a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Folder of decoded caches. `None`: beside the recording if its folder is writable, otherwise
    /// in the user's cache folder.
    pub cache_dir: Option<PathBuf>,
    /// Action for damaged lines.
    pub on_damage: OnDamage,
    /// The surface of frames whose keys do not show it (see [`windvane_protocol::surface`]).
    /// `None`: the surface of the first frame in the recording that shows it, or spot.
    pub surface: Option<Surface>,
}

/// Called while a recording is decoded, with the bytes read so far and the total bytes.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);
