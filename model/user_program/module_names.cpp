#include "model/user_program/module_names.hpp"

#include <fmt/core.h>

#include <utility>

#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

bool is_of_module(std::string_view name) { return name.starts_with("self."); }

}  // namespace

ModuleNames::ModuleNames(const StatementContext& context, const TensorStore& tensors,
                         StreamOrder& streams)
    : rank_(context.rank),
      log_(context.log),
      trainer_(context.trainer),
      buffers_(context, tensors, streams) {}

Variable* ModuleNames::find(std::string_view name, Frame& frame) {
  Frame& names = is_of_module(name) ? module_ : frame;
  const auto found = names.find(name);
  return found == names.end() ? nullptr : &found->second;
}

void ModuleNames::bind(const std::string& name, Variable variable, Frame& frame) {
  Frame& names = is_of_module(name) ? module_ : frame;
  if (&names == &module_ && before_child_) {
    bound_in_child_.insert(name);
  } else if (&names == &module_) {
    lost_.erase(name);
  }
  if (buffers_.has(name) && !before_replica_) {
    variable.content = buffers_.take_over(name, variable);
  }
  if (&names == &module_ && trainer_ != nullptr) {
    trainer_->name_bound(name);
  }
  names[name] = std::move(variable);
}

void ModuleNames::unbind(const std::string& name, Frame& frame, SiteId site) {
  Frame& names = is_of_module(name) ? module_ : frame;
  const auto found = names.find(name);
  if (found == names.end()) {
    log_.add({"unbound", site, fmt::format("`{}` is not defined", name),
              "bind it first, or delete it where it is bound"});
    throw ProgramException(site, fmt::format("name `{}` is not defined", name));
  }
  if (buffers_.has(name)) {
    lack_at(log_, site, fmt::format("`del` of the registered buffer `{}` is not modelled", name));
  }
  names.erase(found);
}

void ModuleNames::register_buffer(const std::string& name, TensorPointer buffer) {
  buffers_.add(name, buffer);
  module_[name] = Variable{std::move(buffer)};
}

void ModuleNames::list_grew(const std::string& name) {
  if (trainer_ != nullptr && is_of_module(name)) {
    trainer_->list_grew(name);
  }
  if (before_child_ && is_of_module(name)) {
    bound_in_child_.insert(name);
  }
}

void ModuleNames::note_read_list(const Variable& variable, const std::string& name, SiteId site) {
  if (trainer_ != nullptr && std::holds_alternative<Variable::List>(variable.content) &&
      is_of_module(name)) {
    trainer_->list_read(name, site);
  }
}

void ModuleNames::end_replica() {
  module_ = std::move(*before_replica_);
  before_replica_.reset();
}

void ModuleNames::check_replica(const std::string& name, SiteId site) {
  if (before_replica_ && is_of_module(name)) {
    log_.add({"LS308", site,
              "`" + name + "` is bound on a replica, which is thrown away after the step",
              "return the value and bind it in the hook of the name with `_end`, or use ddp"});
  }
}

void ModuleNames::begin_child() {
  bound_in_child_.clear();
  before_child_ = module_;
}

void ModuleNames::end_child() {
  module_ = std::move(*before_child_);
  before_child_.reset();
  lost_.merge(bound_in_child_);
  bound_in_child_.clear();
}

// Only the main process is left, which is rank 0; the children of a later stage are copies of it.
void ModuleNames::check_lost(const std::string& name, SiteId site) {
  const bool in_child = before_child_.has_value();
  const bool bound_anew = in_child && bound_in_child_.count(name) != 0;
  if (lost_.count(name) != 0 && !bound_anew && (in_child || rank_.id() == 0)) {
    log_.add({"LS308", site,
              "`" + name +
                  "` was bound in a process that has ended: the main process does not "
                  "have its value",
              "log the value, or save it in a checkpoint, or use ddp in a script"});
  }
}

}  // namespace lockstep
