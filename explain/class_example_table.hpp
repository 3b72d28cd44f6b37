#pragma once

#include <span>
#include <string_view>

#include "io/scenario/classes/catalogue.hpp"

namespace lockstep::cli {

/// A class that is modelled, with what it needs at least. `lines` are other sections.
struct ClassExample {
  ObjectRole role;
  std::string_view name;
  std::string_view arguments{};  ///< "{step_size: 2}"; empty: the bare name
  std::string_view lines{};
  std::string_view meaning{};  ///< what it does here, after "a logger of Lightning: "
};
/// Examples for the classes of all roles except metrics.
std::span<const ClassExample> class_examples();
std::span<const ClassExample> metric_examples();

/// An argument that the scenario's language gives to every class of a role that takes it.
struct AddedArgument {
  ObjectRole role;
  std::string_view name;
  std::string_view default_text;  ///< empty, as `meaning`: what the entry of the strategy says
  std::string_view meaning;
  std::string_view lines;  ///< the smallest scenario that shows it, as sections
};
std::span<const AddedArgument> added_arguments();

}  // namespace lockstep::cli
