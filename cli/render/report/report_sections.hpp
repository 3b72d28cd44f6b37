#pragma once

#include <string>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

// Parts of the page, each with its heading; empty: there is nothing to say.
std::string answers_section(const Rehearsal& rehearsal);
std::string breakdown_section(const Rehearsal& rehearsal);
std::string memory_section(const Rehearsal& rehearsal);
std::string utilization_section(const Rehearsal& rehearsal);
std::string layers_section(const Rehearsal& rehearsal);
std::string transfers_section(const Rehearsal& rehearsal);
std::string suggestions_section(const Rehearsal& rehearsal);
std::string findings_section(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
