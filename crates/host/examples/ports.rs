//! Prints what this machine could carry packets with, and its facts: a look at the crate by eye.

fn main() {
    let sys = host::Sys::live();
    for carrier in host::discover(&sys) {
        println!(
            "{:<44} {:<12} {:?} {:?}",
            carrier.uri, carrier.name, carrier.roles, carrier.usable
        );
        println!(
            "    {} {:?} {:?} {:?}",
            carrier.description, carrier.driver, carrier.link, carrier.queues
        );
    }
    let facts = host::facts(&sys, serde_json::json!({"version": env!("CARGO_PKG_VERSION")}));
    println!("{}", serde_json::to_string_pretty(&facts).unwrap_or_default());
    for argument in std::env::args().skip(1) {
        match argument.parse::<host::PortUri>() {
            Err(error) => println!("error: {error}"),
            Ok(uri) => match host::check(&uri, &sys) {
                Ok(prepared) => println!("{prepared:?}"),
                Err(problem) => println!("error: {problem}"),
            },
        }
    }
}
