#pragma once

#include <map>
#include <string>

#include "model/user_program/statement_context.hpp"
#include "model/user_program/stream_order.hpp"

namespace lockstep {

/// The buffers that a module has registered, by the names under which statements see them
/// ("self.mean"): what is bound to such a name becomes the buffer's content.
class RegisteredBuffers {
 public:
  /// All outlive the buffers.
  RegisteredBuffers(const StatementContext& context, const TensorStore& tensors,
                    StreamOrder& streams);

  void add(const std::string& name, TensorPointer buffer) { buffers_[name] = std::move(buffer); }
  bool has(const std::string& name) const { return buffers_.count(name) != 0; }
  /// The tensor that a registered name names once `given` is bound to it: the buffer, into which a
  /// copy has been put, or the given tensor where torch looks no buffer up again. Throws
  /// ProgramException where the name takes no such value.
  TensorPointer take_over(const std::string& name, const Variable& given);

 private:
  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  const TensorStore& tensors_;
  StreamOrder& streams_;
  std::map<std::string, TensorPointer, std::less<>> buffers_;
};

}  // namespace lockstep
