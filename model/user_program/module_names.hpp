#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "model/user_program/registered_buffers.hpp"
#include "model/user_program/statement_context.hpp"

namespace lockstep {

/// The names that statements of one rank bind on the module ("self.total"), and those of the hook
/// around them, which it is given. Knows what becomes of the module's names where the module is a
/// copy: a replica of a device, or that of a spawned process.
class ModuleNames {
 public:
  /// All outlive the names.
  ModuleNames(const StatementContext& context, const TensorStore& tensors, StreamOrder& streams);

  /// Null: the name is not defined. The pointer holds until the name is bound or deleted.
  Variable* find(std::string_view name, Frame& frame);
  void bind(const std::string& name, Variable variable, Frame& frame);
  /// `del`. Throws ProgramException where the name is not bound.
  void unbind(const std::string& name, Frame& frame, SiteId site);
  /// `name` is a registered buffer from here on: what is bound to it becomes the buffer's content.
  void register_buffer(const std::string& name, TensorPointer buffer);
  /// An entry has been added to a list, or a list is read: what a trainer watches on the module.
  void list_grew(const std::string& name);
  void note_read_list(const Variable& variable, const std::string& name, SiteId site);

  /// From here on the module is a replica: names bound on it are lost when the copy ends.
  void begin_replica() { before_replica_ = module_; }
  void end_replica();
  bool in_replica() const { return before_replica_.has_value(); }
  /// LS308 where a name has been bound on a replica.
  void check_replica(const std::string& name, SiteId site);
  /// Like begin_replica, for a spawned process; reading a lost name is LS308.
  void begin_child();
  void end_child();
  void check_lost(const std::string& name, SiteId site);

 private:
  const Rank& rank_;
  RankLog& log_;
  TrainerScope* trainer_;
  RegisteredBuffers buffers_;
  Frame module_;
  std::optional<Frame> before_replica_;
  std::optional<Frame> before_child_;
  std::set<std::string> bound_in_child_;  ///< lost once the child has ended
  std::set<std::string> lost_;            ///< with a child, and not bound again since
};

}  // namespace lockstep
