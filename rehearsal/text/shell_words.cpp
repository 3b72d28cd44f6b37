#include "rehearsal/text/shell_words.hpp"

namespace lockstep::cli {

std::string shell_word(const std::string& argument) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string::npos) {
    return argument;
  }
  std::string quoted = "'";
  for (const char letter : argument) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return quoted + "'";
}

std::string shell_words(const Scenario& scenario) {
  std::string words =
      shell_word(scenario.name.empty() ? scenario.file : scenario.file + ":" + scenario.name);
  for (const std::string& setting : scenario.settings) {
    words += " --set " + shell_word(setting);
  }
  return words;
}

}  // namespace lockstep::cli
