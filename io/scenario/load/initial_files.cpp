#include "io/scenario/load/initial_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/load/digest.hpp"
#include "model/core/random.hpp"

namespace lockstep {

void InitialFiles::read(Scenario& scenario, const std::filesystem::path& folder) {
  folder_ = folder;
  digest_ = scenario.digest;
  if (scenario.model) {
    read_model(*scenario.model);
  }
  if (scenario.data) {
    read_loader(scenario.data->common);
    for (auto* stage : {&scenario.data->train, &scenario.data->val, &scenario.data->test,
                        &scenario.data->predict}) {
      std::ranges::for_each(*stage, [this](LoaderSpec& loader) { read_loader(loader); });
    }
  }
  scenario.digest = digest_;
}

void InitialFiles::read_loader(LoaderSpec& loader) {
  for (std::optional<TensorValues>* values : {&loader.inputs, &loader.targets}) {
    if (*values) {
      read_values(**values);
    }
  }
}

void InitialFiles::read_model(ModelSpec& model) {
  read_layers(model.layers);
  read_all(model.initial);
  for (NamedModel& module : model.modules) {
    read_model(module.model);
  }
}

void InitialFiles::read_layers(std::vector<LayerSpec>& layers) {
  for (LayerSpec& layer : layers) {
    read_all(layer.initial);
    read_layers(layer.layers);
    read_layers(layer.shortcut);
  }
}

void InitialFiles::read_all(std::vector<TensorValues>& all) {
  std::ranges::for_each(all, [this](TensorValues& values) { read_values(values); });
}

void InitialFiles::read_values(TensorValues& values) {
  if (!values.csv) {
    return;
  }
  const std::string name = (folder_ / values.csv->value).lexically_normal().string();
  const KnownFile& known = file_of(name, values.csv->place);
  values.shape = {known.file.rows, known.file.columns};
  values.numbers = known.file.numbers;
  digest_ = random_key(digest_, known.digest);
}

const InitialFiles::KnownFile& InitialFiles::file_of(const std::string& name,
                                                     const SourcePlace& place) {
  const auto [entry, is_new] = files_.try_emplace(name);
  KnownFile& known = entry->second;
  if (!is_new) {
    return known;
  }
  const auto read = read_file_(name, most_bytes_of_numbers);
  if (const auto* error = std::get_if<FileError>(&read)) {
    reader_.fail_at(place, fmt::format("{}: {}", name, error->message),
                    "paths are relative to the scenario file");
    return known;
  }
  const std::string& text = std::get<std::string>(read);
  if (text.size() > most_bytes_of_numbers) {
    reader_.fail_at(place,
                    fmt::format("{} has more than {} MiB", name, most_bytes_of_numbers >> 20),
                    "use a smaller model to compare values");
    return known;
  }
  auto numbers = read_numbers(text, name);
  if (const auto* fault = std::get_if<Diagnostic>(&numbers)) {
    if (fault->place.line == 0) {
      reader_.fail_at(place, fmt::format("{}: {}", name, fault->message), fault->remedy);
    } else {
      note_fault(*fault, text);
    }
    return known;
  }
  known.file = std::get<NumberFile>(std::move(numbers));
  known.digest = digest_with(0, text);
  return known;
}

/// Of the file only the faulty line is kept; those before it are empty, so that its number holds.
void InitialFiles::note_fault(const Diagnostic& fault, const std::string& text) {
  size_t begin = 0;
  for (int line = 1; line < fault.place.line; ++line) {
    begin = text.find('\n', begin) + 1;
  }
  constexpr size_t longest_line = 4096;
  const size_t length = std::min(text.find('\n', begin), text.size()) - begin;
  loaded_.sources[fault.place.file] = std::string(static_cast<size_t>(fault.place.line) - 1, '\n') +
                                      text.substr(begin, std::min(length, longest_line)) + "\n";
  loaded_.diagnostics.push_back(fault);
}

}  // namespace lockstep
