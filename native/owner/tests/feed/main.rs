//! A real proxy, its feed thread and a real TCP connection; the coordinator is scripted by each
//! test.

mod gate;
mod peer;
mod race;
mod traffic;
