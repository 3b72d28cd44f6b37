#include "model/scenario/program_spec.hpp"

namespace lockstep {

namespace {

const Hook* named(const std::vector<Hook>& hooks, std::string_view name) {
  for (const Hook& hook : hooks) {
    if (hook.name == name) {
      return &hook;
    }
  }
  return nullptr;
}

}  // namespace

const Hook* ProgramSpec::find(std::string_view name) const { return named(hooks, name); }

const Hook* ProgramSpec::find_function(std::string_view name) const {
  return named(functions, name);
}

}  // namespace lockstep
