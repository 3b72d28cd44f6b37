#include <string_view>
#include <utility>

#include "cli/commands/commands.hpp"

namespace lockstep::cli {

Answer answer_by_command(const Request& request, const Style& shown) {
  using Command = Answer (*)(const Request&, const Style&);
  constexpr std::pair<std::string_view, Command> commands[] = {
      {"run", run_command},           {"verify", verify_command},
      {"exec", exec_command},         {"compare", compare_command},
      {"doctor", doctor_command},     {"calibrate", calibrate_command},
      {"test", test_command},         {"sweep", sweep_command},
      {"accuracy", accuracy_command}, {"collective", collective_command},
      {"plan", plan_command}};
  for (const auto& [name, command] : commands) {
    if (request.command == name) {
      return command(request, shown);
    }
  }
  if (request.command == "presets") {
    return presets_command(request);
  }
  if (request.command == "explain") {
    return request.environment ? explain_environment(request) : explain_command(request);
  }
  return schema_command();
}

}  // namespace lockstep::cli
