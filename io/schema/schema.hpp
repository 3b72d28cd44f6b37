#pragma once

#include <string>

namespace lockstep {

/// The scenario format as JSON Schema (draft 7), made from the loader's own tables, for editors
/// (`# yaml-language-server: $schema=FILE`). It knows keys, types, words, bounds and spellings of
/// quantities; only the loader checks what needs more than one key at a time.
std::string json_schema();

}  // namespace lockstep
