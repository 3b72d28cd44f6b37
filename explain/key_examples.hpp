#pragma once

#include <string>
#include <string_view>

namespace lockstep::cli {

/// The smallest scenario that shows what a key of a table ("trainer", "cluster.gpu") does. Of a
/// fault ("fault.signal") or a statement the table alone says it. Empty: the program gives the key
/// no meaning there.
std::string example_of_key(std::string_view table, std::string_view key);
std::string example_of_statement(std::string_view name);
std::string example_of_hook(std::string_view name);
/// Sections as a whole scenario: what they do not say is as in the other examples.
std::string scenario_with(const std::string& lines);

}  // namespace lockstep::cli
