//! What strategy authors compile against.
