//! `completions`, `man`: print descriptions of the command line.

use clap::Command;
use clap_complete::Shell;

use super::{CommandError, print_document};

pub(super) fn completions(shell: Shell, command: &mut Command) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "jackfield", &mut script);
    print_document(&String::from_utf8_lossy(&script))
}

/// Prints one manual page with every command.
pub(super) fn man(mut command: Command) -> Result<(), CommandError> {
    command.build();
    let mut page = Vec::new();
    let render = |page: &mut Vec<u8>| -> std::io::Result<()> {
        clap_mangen::Man::new(command.clone()).render(page)?;
        let commands = command.get_subcommands();
        for one in commands.filter(|one| one.get_name() != "help") {
            let man = clap_mangen::Man::new(one.clone());
            man.render_name_section(page)?;
            man.render_synopsis_section(page)?;
            man.render_options_section(page)?;
        }
        Ok(())
    };
    render(&mut page).map_err(CommandError::Stdout)?;
    print_document(&String::from_utf8_lossy(&page))
}
