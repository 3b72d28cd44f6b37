#pragma once

#include <vector>

#include "model/core/op.hpp"
#include "model/core/update_sensitivity.hpp"
#include "model/core/values.hpp"
#include "model/network/execute.hpp"
#include "model/network/optimizer/update_kernel.hpp"

namespace lockstep {

struct SharedNorms;

/// One step of an optimizer on one tensor: in fp32 (fp64 where an operand is), each operation
/// rounded as torch's is, and each stored tensor once more to its type.
void update_values(const UpdateCall& call, const Values& gradient, std::vector<Values>& state,
                   Values& parameter, UpdateSensitivity* sensitivity,
                   SharedNorms* shared = nullptr);

/// The kernel optimizer_step.
void execute_update(const OpLists& lists, Operands& operands);

}  // namespace lockstep
