#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/core/version.hpp"
#include "model/scenario/trainer_spec.hpp"

namespace lockstep {

/// An argument of Lightning's Trainer that only some versions have, or that no part of the model
/// reads: its default is accepted, and any other value is judged by this row.
struct TrainerArgument {
  enum class Otherwise : uint8_t {
    without_effect,  ///< on what is modelled: a note
    not_modelled,    ///< exit 5
    read,            ///< where devices are chosen
    no_such_device,  ///< no cluster here has what it counts
  };
  std::string_view name;
  std::string_view default_text;  ///< as the format's reference writes it; empty: none
  std::string_view meaning;
  Version from;   ///< the first version that has it
  Version until;  ///< the first version that has it no more
  Otherwise otherwise = Otherwise::without_effect;
  std::string_view instead = "";  ///< what to write, where it has been removed or is not modelled
};

std::span<const TrainerArgument> trainer_arguments();
/// Null for an argument of another kind.
const TrainerArgument* find_trainer_argument(std::string_view name);
/// Whether a value is the default of its argument, in whatever version: then it asks for nothing.
bool is_default(const TrainerArgument& argument, const PlainValue& value);
/// The last minor version whose Trainer has every argument of this kind that `trainer` gives;
/// nothing where the newest has them all.
std::optional<Version> newest_with_arguments(const TrainerSpec& trainer);

}  // namespace lockstep
