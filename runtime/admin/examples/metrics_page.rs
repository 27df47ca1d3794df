//! Prints the page of all metrics.

fn main() {
    print!("{}", windvane_admin::metrics::page());
}
