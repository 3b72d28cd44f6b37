#pragma once

#include <nlohmann/json.hpp>

namespace lockstep::test {

/// What the product does in a setting of tests/oracle/settings.py, in the simulated world with
/// values: one entry per rank, written as a recording of the real framework is.
nlohmann::json our_run(const nlohmann::json& setting);

}  // namespace lockstep::test
