#pragma once

#include <memory>

#include "model/scenario/statement.hpp"
#include "model/user_program/device_tensor.hpp"
#include "model/user_program/program_settings.hpp"

namespace lockstep {

/// Whether a statement sends or receives.
bool is_message(const Statement& statement);

/// An operation of the user's own uses a tensor on a stream, of which its allocator knows nothing.
void expose(DeviceTensor& tensor, StreamId on);

/// A call of c10d uses a tensor on a stream, and may keep its memory. `work`: null for a call that
/// is not async.
void expose_to_call(const ProgramSettings& settings, const Statement& statement,
                    DeviceTensor& tensor, StreamId on, const std::shared_ptr<PendingWork>& work);

}  // namespace lockstep
