#include "codegen/cpu/Image.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace llvm::object;
using namespace charonia::cpu;

static Error fail(const Twine &message) {
  return createStringError("machine code of a kernel cannot be laid out: " +
                           message);
}

Expected<FlatObject> charonia::cpu::flattenObject(StringRef data) {
  auto binary = ELFObjectFile<ELF64LE>::create(MemoryBufferRef(data, "kernel"));
  if (!binary)
    return binary.takeError();
  const ELFFile<ELF64LE> &elf = binary->getELFFile();
  auto sections = elf.sections();
  if (!sections)
    return sections.takeError();

  FlatObject flat;
  DenseMap<unsigned, uint64_t> offsets; // of each section that is laid out
  auto layOut = [&](bool code) -> Error {
    for (auto [index, section] : enumerate(*sections)) {
      bool executable = section.sh_flags & ELF::SHF_EXECINSTR;
      if (!(section.sh_flags & ELF::SHF_ALLOC) || section.sh_size == 0 ||
          executable != code)
        continue;
      auto name = elf.getSectionName(section);
      if (!name)
        return name.takeError();
      if (section.sh_type == ELF::SHT_X86_64_UNWIND || *name == ".eh_frame" ||
          section.sh_type == ELF::SHT_NOTE)
        continue;
      if (section.sh_type != ELF::SHT_PROGBITS ||
          (section.sh_flags & ELF::SHF_WRITE))
        return fail("section " + *name + " is no read-only data");
      if (section.sh_addralign > kImageAlignment)
        return fail("section " + *name + " is aligned to more than " +
                    Twine(kImageAlignment));
      auto contents = elf.getSectionContents(section);
      if (!contents)
        return contents.takeError();
      flat.bytes.resize(alignTo(flat.bytes.size(),
                                std::max<uint64_t>(section.sh_addralign, 1)));
      offsets[index] = flat.bytes.size();
      flat.bytes.insert(flat.bytes.end(), contents->begin(), contents->end());
    }
    return Error::success();
  };
  for (bool code : {true, false})
    if (Error error = layOut(code))
      return error;

  for (const auto &section : *sections) {
    if (section.sh_type != ELF::SHT_RELA || !offsets.count(section.sh_info))
      continue;
    auto symbolTable = elf.getSection(section.sh_link);
    if (!symbolTable)
      return symbolTable.takeError();
    auto relocations = elf.relas(section);
    if (!relocations)
      return relocations.takeError();
    for (const auto &relocation : *relocations) {
      auto symbol = elf.getRelocationSymbol(relocation, *symbolTable);
      if (!symbol)
        return symbol.takeError();
      auto strings = elf.getStringTableForSymtab(**symbolTable);
      if (!strings)
        return strings.takeError();
      std::string name = (*symbol)->getName(*strings)->str();
      auto target = offsets.find((*symbol)->st_shndx);
      if (target == offsets.end())
        return fail("it refers to the undefined symbol '" + name + "'");
      uint64_t place = offsets[section.sh_info] + relocation.r_offset;
      int64_t value =
          target->second + (*symbol)->st_value + relocation.r_addend - place;
      uint32_t type = relocation.getType(false);
      if (type == ELF::R_X86_64_PC32 || type == ELF::R_X86_64_PLT32) {
        if (!isInt<32>(value))
          return fail("'" + name + "' is too far away");
        support::endian::write32le(&flat.bytes[place], value);
      } else if (type == ELF::R_X86_64_PC64) {
        support::endian::write64le(&flat.bytes[place], value);
      } else {
        return fail("relocation of type " +
                    getELFRelocationTypeName(ELF::EM_X86_64, type) +
                    " against '" + name + "'");
      }
    }
  }

  for (const ELFSymbolRef symbol : binary->symbols()) {
    if (symbol.getELFType() != ELF::STT_FUNC ||
        symbol.getBinding() != ELF::STB_GLOBAL)
      continue;
    auto name = symbol.getName();
    auto section = symbol.getSection();
    auto value = symbol.getValue();
    if (!name || !section || !value)
      return fail("a function symbol is damaged");
    flat.functions.emplace_back(name->str(),
                                offsets[(*section)->getIndex()] + *value);
  }
  llvm::sort(flat.functions,
             [](auto &a, auto &b) { return a.second < b.second; });
  return flat;
}
