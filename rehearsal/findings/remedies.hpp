#pragma once

#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Lets remedies name the statement that they are about, and adds the same in Python: lines of a
/// LightningModule or of a script that uses torch.distributed.
void complete_remedies(const OneRun& run, std::vector<Finding>& findings);

/// An expression of a scenario as Python would have it: "self.trainer.is_global_zero".
std::string python_text(const std::string& expression);

}  // namespace lockstep::cli
