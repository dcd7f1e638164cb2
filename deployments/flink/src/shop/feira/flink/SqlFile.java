package shop.feira.flink;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A file of SQL statements. Each ends with a semicolon at the end of a line; a line that begins with two hyphens is a
 * comment. <code>${name}</code> stands for a variable, <code>${name:-text}</code> for one that may be left out.
 */
record SqlFile(String name, List<String> statements) {
    /** Says what is wrong with a file or its variables, and what to do. */
    static final class Wrong extends Exception {
        Wrong(String message) {
            super(message);
        }
    }

    private static final Pattern COMMENT = Pattern.compile("(?m)^\\s*--.*$");
    private static final Pattern VARIABLE = Pattern.compile("\\$\\{(\\w+)(?::-([^}]*))?}");
    private static final Pattern END = Pattern.compile(";\\s*(?:\\n|$)");

    static SqlFile read(Path path, Map<String, String> variables) throws Wrong {
        String text;
        try {
            text = Files.readString(path);
        } catch (IOException e) {
            throw new Wrong("the SQL file " + path + " cannot be read: " + e.getMessage());
        }
        text = fill(path, COMMENT.matcher(text).replaceAll(""), variables);
        List<String> statements = new ArrayList<>();
        for (String s : END.split(text)) {
            if (!s.isBlank()) {
                statements.add(s.strip());
            }
        }
        if (statements.isEmpty()) {
            throw new Wrong("the SQL file " + path + " holds no statement");
        }
        return new SqlFile(path.getFileName().toString().replaceFirst("\\.sql$", ""), statements);
    }

    /** Puts values for variables. One that is missing or that the file does not have is a mistake. */
    private static String fill(Path path, String text, Map<String, String> variables) throws Wrong {
        TreeSet<String> unknown = new TreeSet<>(variables.keySet());
        TreeSet<String> missing = new TreeSet<>();
        String filled = VARIABLE.matcher(text).replaceAll(found -> {
            String name = found.group(1);
            unknown.remove(name);
            String value = variables.getOrDefault(name, found.group(2));
            if (value == null) {
                missing.add(name);
                return "";
            }
            return Matcher.quoteReplacement(value.replace("'", "''")); // it stands between quotes
        });
        if (!missing.isEmpty()) {
            throw new Wrong(path + " needs " + missing + ": give each as name=value");
        }
        if (!unknown.isEmpty()) {
            throw new Wrong(path + " has no variables " + unknown);
        }
        return filled;
    }
}
