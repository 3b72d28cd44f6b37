#include "cli/mistyped.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "io/scenario/names/spelling.hpp"

namespace lockstep::cli {

namespace {

std::vector<std::string> commands_of(const CLI::App& application) {
  std::vector<std::string> names;
  for (const CLI::App* command :
       application.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// "--set", "-o".
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      names.push_back("-" + name);
    }
  }
  return names;
}

std::string nearest_of(const std::string& word, const std::vector<std::string>& legal) {
  return nearest_spelling(word, {legal.begin(), legal.end()});
}

Mistyped unknown_command(const CLI::App& application, const std::string& name) {
  const std::vector<std::string> names = commands_of(application);
  const auto begun = std::ranges::find_if(
      names, [&](const std::string& command) { return command.starts_with(name); });
  const std::string nearest = begun != names.end() ? *begun : nearest_of(name, names);
  if (!nearest.empty()) {
    return {fmt::format("there is no command `{}`", name),
            fmt::format("did you mean `{}`?", nearest)};
  }
  const bool is_file = name.find('.') != std::string::npos || name.find('/') != std::string::npos;
  if (is_file) {
    return {"a command is missing", fmt::format("write lockstep verify {}", name)};
  }
  return {fmt::format("there is no command `{}`", name),
          fmt::format("expected one of: {}", fmt::join(names, ", "))};
}

// Which other commands have the option.
std::string owners_of(const CLI::App& application, const std::string& option) {
  std::string owners;
  for (const CLI::App* command :
       application.get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<std::string> names = options_of(*command);
    if (std::ranges::count(names, option) > 0) {
      owners += (owners.empty() ? "" : ", ") + command->get_name();
    }
  }
  return owners;
}

Mistyped unknown_option(const CLI::App& application, const CLI::App& command,
                        const std::string& option) {
  const std::string message = fmt::format("{} has no option {}", command.get_name(), option);
  if (const std::string owners = owners_of(application, option); !owners.empty()) {
    return {message, fmt::format("{} is an option of: {}", option, owners)};
  }
  const std::string nearest = nearest_of(option, options_of(command));
  return {message, nearest.empty() ? "" : fmt::format("did you mean {}?", nearest)};
}

bool is_number(const std::string& argument) {
  return argument.size() > 1 &&
         (std::isdigit(static_cast<unsigned char>(argument[1])) != 0 || argument[1] == '.');
}

}  // namespace

Mistyped find_mistyped(const CLI::App& application, const std::vector<std::string>& arguments) {
  const auto first = std::ranges::find_if(
      arguments, [](const std::string& argument) { return !argument.starts_with("-"); });
  const CLI::App* command = &application;
  if (first != arguments.end()) {
    const std::vector<const CLI::App*> commands =
        application.get_subcommands([](const CLI::App*) { return true; });
    const auto named = std::ranges::find_if(
        commands, [&](const CLI::App* known) { return known->get_name() == *first; });
    if (named == commands.end()) {
      return unknown_command(application, *first);
    }
    command = *named;
  }
  const std::vector<std::string> own = options_of(*command);
  const std::vector<std::string> common = options_of(application);
  for (const std::string& argument : arguments) {
    if (argument == "--") {
      break;  // what follows are files
    }
    if (!argument.starts_with("-") || argument == "-" || is_number(argument)) {
      continue;
    }
    const bool is_long = argument.starts_with("--");
    const std::string option =
        is_long ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
    if (std::ranges::count(own, option) == 0 && std::ranges::count(common, option) == 0) {
      return command == &application ? Mistyped{fmt::format("there is no option {}", option), ""}
                                     : unknown_option(application, *command, option);
    }
  }
  return {};
}

}  // namespace lockstep::cli
