#include "io/scenario/load/host_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/load/digest.hpp"

namespace lockstep {

namespace {

constexpr size_t most_bytes_of_hosts = size_t{1} << 20;

std::string_view next_word(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
  line.remove_prefix(begin);
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

void HostFile::read(Scenario& scenario, const std::filesystem::path& folder) {
  if (!scenario.launcher) {
    return;
  }
  std::vector<ObjectArgument>& arguments = scenario.launcher->arguments;
  const auto given = std::ranges::find(arguments, "hostfile", &ObjectArgument::name);
  const std::string* const path =
      given == arguments.end() ? nullptr : given->value.get_if<std::string>();
  if (path == nullptr) {
    return;
  }
  place_ = given->place;
  if (scenario.launcher->find("hosts") != nullptr) {
    reader_.fail_at(place_, "`hosts` and `hostfile` cannot be combined", "leave one of them out");
    return;
  }
  const std::string name = (folder / *path).lexically_normal().string();
  const auto text = read_file_(name, most_bytes_of_hosts);
  if (const auto* const error = std::get_if<FileError>(&text)) {
    reader_.fail_at(place_, fmt::format("{}: {}", name, error->message),
                    "paths are relative to the scenario file");
    return;
  }
  std::string_view rest = std::get<std::string>(text);
  scenario.digest = digest_with(scenario.digest, rest);
  loaded_.files.push_back(name);
  PlainValue::List hosts;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (!add_line(rest.substr(0, end), number, name, hosts)) {
      return;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  given->value = {std::monostate{}, place_};
  arguments.push_back({"hosts", {std::move(hosts), place_}, place_});
}

// parse_host_files of horovodrun, and the hostfile of Open MPI: a name, and `slots=N`.
bool HostFile::add_line(std::string_view line, int number, const std::string& name,
                        PlainValue::List& hosts) {
  line = line.substr(0, line.find('#'));
  const std::string_view host = next_word(line);
  if (host.empty()) {
    return true;
  }
  std::string_view slots;
  while (!line.empty()) {
    const std::string_view word = next_word(line);
    if (word.starts_with("slots=")) {
      slots = word.substr(6);
    } else if (!word.empty() && !word.starts_with("max_slots=") &&
               !word.starts_with("max-slots=")) {
      reader_.fail_at(place_, fmt::format("{}, line {}: `{}` is not slots=N", name, number, word),
                      "write a host per line, as in: host1 slots=4");
      return false;
    }
  }
  if (slots.empty()) {
    reader_.fail_at(
        place_, fmt::format("{}, line {}: the host {} has no slots=N", name, number, host),
        "write a host per line, as in: host1 slots=4. (mpirun would count the host's cores)");
    return false;
  }
  hosts.push_back({fmt::format("{}:{}", host, slots), place_});
  return true;
}

}  // namespace lockstep
