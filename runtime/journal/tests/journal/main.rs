//! The journal as a whole, with real files and real processes.

mod damage;
mod disks;
mod kills;
mod life;
mod support;
