#include "model/scenario/program_spec.hpp"

namespace lockstep {

const Hook* ProgramSpec::find(std::string_view name) const {
  for (const Hook& hook : hooks) {
    if (hook.name == name) {
      return &hook;
    }
  }
  return nullptr;
}

}  // namespace lockstep
