#pragma once

#include <string>
#include <string_view>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// A line of what `run` answers: "  step time     95.08 ms                MFU 0.21".
std::string line(std::string_view key, const std::string& value, const std::string& beside = "");

/// "lightning 1.6 · torch 1.11 (assumed)": the release of torch that an older Lightning is taken to
/// run on, where the scenario names none.
std::string versions_text(const Rehearsal& rehearsal);

// Those of memory; empty where there is nothing to say.
std::string memory_line(const Rehearsal& rehearsal);
std::string drive_line(const Rehearsal& rehearsal);
std::string host_line(const Rehearsal& rehearsal);
/// What the last checkpoint takes, and who writes it.
std::string checkpoint_line(const Rehearsal& rehearsal);

/// What the run costs, and a million samples; empty where no price is known.
std::string cost_lines(const Rehearsal& rehearsal);

/// Whether ranks on GPUs keep state of the model in host memory.
bool offloads(const Rehearsal& rehearsal);

/// Where speeds of different batch sizes stand side by side.
inline constexpr std::string_view not_convergence =
    "  Speed alone is compared: how well a model trains with another batch size is not modelled.\n";

/// All steps of a training, which has taken one at least, and what takes time beside them.
std::string steps_lines(const Prediction& prediction);

/// The usual step of a strategy that does not exchange the same in every step; empty for others.
std::string cycle_line(const Prediction& prediction);

}  // namespace lockstep::cli
