"""Lexicon of the built-in phrases: French and English words with their irregular forms.

A row holds a word in both languages. Plurals and other forms that follow no rule come after a slash; the last column
names what a word goes with: f fruit, vegetables, eggs; s other food that is counted; m food that is not counted;
d drink; t thing; r something to read; c clothes; a animal; v vehicle of one's own; u public transport; k kin and
friends; p people; h home; i place where people work; l other place.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from regard.data.phrases import english, french


@dataclass(frozen=True)
class Noun:
    """A noun: French singular and plural, gender, English singular and plural, kind."""

    french: str
    french_plural: str
    gender: str
    english: str
    english_plural: str
    kind: str


@dataclass(frozen=True)
class Adjective:
    """An adjective: French masculine and feminine, position, English, its comparative, kinds of nouns it suits."""

    french: str
    feminine: str
    before: bool
    english: str
    comparative: str
    kinds: str


NOUN_TABLE = """
f pomme f apple; poire f pear; orange f orange; banane f banana; tomate f tomato/tomatoes; carotte f carrot; œuf m egg
f fraise f strawberry; citron m lemon; oignon m onion; cerise f cherry; haricot m bean; champignon m mushroom
f pêche f peach; melon m melon; concombre m cucumber; abricot m apricot
s gâteau m cake; sandwich m sandwich; croissant m croissant; biscuit m biscuit; crêpe f pancake; omelette f omelette
m pain m bread; fromage m cheese; viande f meat; riz m rice; beurre m butter; soupe f soup; confiture f jam
m miel m honey; chocolat m chocolate; salade f salad; poulet m chicken; poisson m fish
d eau f water; café m coffee; thé m tea; lait m milk; vin m wine; bière f beer; limonade f lemonade; cidre m cider
t clé f key; stylo m pen; crayon m pencil; cahier m notebook; sac m bag; montre f watch; téléphone m telephone
t lampe f lamp; ordinateur m computer; table f table; chaise f chair; fleur f flower; cadeau m present
t bouteille f bottle; verre m glass; tasse f cup; assiette f plate; couteau m knife/knives; fourchette f fork
t photo f photo; boîte f box; parapluie m umbrella; ballon m ball; jouet m toy; lit m bed; valise f suitcase
t horloge f clock; miroir m mirror; tapis m carpet; guitare f guitar; armoire f wardrobe; bougie f candle
t échelle f ladder; outil m tool; panier m basket; radio f radio; étagère f shelf/shelves
r livre m book; journal m newspaper; lettre f letter; poème m poem; histoire f story; magazine m magazine; roman m novel
c chemise f shirt; robe f dress; veste f jacket; chapeau m hat; manteau m coat; chaussure f shoe; pull m sweater
c jupe f skirt; écharpe f scarf/scarves; gant m glove; cravate f tie; chaussette f sock; ceinture f belt
c uniforme m uniform
a chat m cat; chien m dog; cheval m horse; oiseau m bird; vache f cow; mouton m sheep/sheep; lapin m rabbit
a souris f mouse/mice; poule f hen; canard m duck; cochon m pig; éléphant m elephant; âne m donkey; hibou/hiboux m owl
a tortue f turtle; singe m monkey; ours m bear; hamster m hamster; renard m fox; loup m wolf/wolves; araignée f spider
v voiture f car; vélo m bicycle; bateau m boat; camion m lorry; moto f motorbike
u train m train; avion m plane; bus m bus
k mère f mother; père m father; frère m brother; sœur f sister; fils m son; fille f daughter; oncle m uncle
k tante f aunt; cousin m cousin; cousine f cousin; ami m friend; amie f friend; voisin m neighbour; voisine f neighbour
k grand-mère/grands-mères f grandmother; grand-père/grands-pères m grandfather; collègue m colleague
p homme m man/men; femme f woman/women; garçon m boy; fille f girl; enfant m child/children; touriste m tourist
p médecin m doctor; étudiant m student; étudiante f student; boulanger m baker; avocat m lawyer; professeur m teacher
p infirmière f nurse; fermier m farmer; client m customer; invité m guest; acteur m actor
h maison f house; appartement m flat; chambre f bedroom; cuisine f kitchen
i école f school; musée m museum; hôpital m hospital; restaurant m restaurant; cinéma m cinema; bibliothèque f library
i boulangerie f bakery; banque f bank; pharmacie f pharmacy; hôtel m hotel; université f university; théâtre m theatre
i magasin m shop; aéroport m airport; usine f factory; ferme f farm; gare f station; mairie f town hall
i ambassade f embassy
l marché m market; parc m park; plage f beach; église f church; piscine f swimming pool; château m castle
l jardin m garden; village m village; pont m bridge; lac m lake; port m port; stade m stadium; zoo m zoo
"""

ADJECTIVE_TABLE = """
before: petit small smaller stcavlfrp; beau beautiful - stcavlfr; bon good better srlfmd; mauvais bad worse srlfmd
before: grand big bigger tcavl; grand tall taller kp; nouveau new newer tcvlr; vieux old older tcavlrkp
before: joli pretty prettier tcal; jeune young younger akp; long/longue long longer r; gros/grosse fat fatter a
after: rouge red redder tcvf; vert green greener tcvf; bleu blue bluer tcv; blanc/blanche white whiter tcva
after: noir black blacker tcva; jaune yellow yellower tcvf; gris grey greyer tcva; rose pink pinker tc
after: brun brown browner tca; intéressant interesting - rlkp; cher expensive - stcvlfmd; froid cold colder sfmdl
after: chaud hot hotter md; lourd heavy heavier t; léger light lighter tc; vide empty emptier tl
after: propre clean cleaner tcvl; sale dirty dirtier tcvl; délicieux delicious - sfmd; dangereux dangerous - avl
after: heureux happy happier kpa; triste sad sadder rkpa; fatigué tired - kpa; malade ill - kpa
after: gentil/gentille kind kinder kp; intelligent intelligent - kpa; drôle funny funnier rkp; fort strong stronger kpav
after: riche rich richer kp; pauvre poor poorer kp; célèbre famous - kplr; sérieux serious - kp; curieux curious - kpa
after: paresseux lazy lazier kpa; courageux brave braver kpa; calme calm calmer kpl; poli polite - kp
after: étrange strange stranger trkpl; moderne modern - tvlr; mûr ripe riper f; frais/fraîche fresh fresher sfm
after: sucré sweet sweeter sfd; salé salty saltier m; jaloux/jalouse jealous - kp; doux/douce soft softer c
after: utile useful - tvr; rapide fast faster va; français French - lrdmp; italien Italian - lvrcmp
after: espagnol Spanish - lrcdmp; anglais English - lrdp; américain American - vrp; sportif athletic - kp
after: actif active - kpa; prudent careful - kp; patient patient - kp; silencieux silent - vlkp
"""

PROFESSIONS = """
étudiant/étudiante student; médecin/médecin doctor; professeur/professeur teacher; infirmier/infirmière nurse
avocat/avocate lawyer; boulanger/boulangère baker; acteur/actrice actor/actress; chanteur/chanteuse singer
journaliste/journaliste journalist; dentiste/dentiste dentist; cuisinier/cuisinière cook; musicien/musicienne musician
policier/policière police officer; serveur/serveuse waiter/waitress; danseur/danseuse dancer
ingénieur/ingénieure engineer; coiffeur/coiffeuse hairdresser; pompier/pompière firefighter
agriculteur/agricultrice farmer; peintre/peintre painter; pilote/pilote pilot; directeur/directrice director
architecte/architecte architect; artiste/artiste artist; photographe/photographe photographer
vendeur/vendeuse shop assistant; libraire/libraire bookseller; juge/juge judge; traducteur/traductrice translator
mécanicien/mécanicienne mechanic; facteur/factrice letter carrier
"""

# French infinitive = English base, past, participle, the kinds of object it takes.
TRANSITIVE = """
manger = eat ate eaten fsm; boire = drink drank drunk d; acheter = buy bought bought fsmdtrcvh; lire = read read read r
vendre = sell sold sold fsmtrcvah; voir = see saw seen takpvlu; porter = wear wore worn c
laver = wash washed washed cvf; regarder = look_at looked_at looked_at takpvlru
chercher = look_for looked_for looked_for trcakpvl; trouver = find found found trcav; perdre = lose lost lost trc
dessiner = draw drew drawn tavlpu; conduire = drive drove driven v; oublier = forget forgot forgotten trc
réparer = repair repaired repaired tv; choisir = choose chose chosen trcfsv; cacher = hide hid hidden trc
prendre = take took taken trcu; nettoyer = clean cleaned cleaned tvl; attendre = wait_for waited_for waited_for kpu
appeler = call called called kp; connaître = know knew known kpl; aider = help helped helped kp
inviter = invite invited invited kp; visiter = visit visited visited l; préparer = prepare prepared prepared sm
couper = cut cut cut fs; écouter = listen_to listened_to listened_to kp; recevoir = receive received received r
apporter = bring brought brought fsmdtrc; goûter = taste tasted tasted fsmd
"""
LIKING = """
aimer = like liked liked; adorer = love loved loved; détester = hate hated hated; préférer = prefer preferred preferred
"""
INTRANSITIVE = """
dormir = sleep slept slept; travailler = work worked worked; chanter = sing sang sung; danser = dance danced danced
courir = run ran run; nager = swim swam swum; jouer = play played played; pleurer = cry cried cried
marcher = walk walked walked; cuisiner = cook cooked cooked; étudier = study studied studied
voyager = travel travelled travelled; parler = talk talked talked; se_lever = get_up got_up got_up
se_coucher = go_to_bed went_to_bed gone_to_bed; se_réveiller = wake_up woke_up woken_up
s'habiller = get_dressed got_dressed got_dressed; se_promener = go_for_a_walk went_for_a_walk gone_for_a_walk
se_reposer = rest rested rested; s'amuser = have_fun had_fun had_fun; se_dépêcher = hurry hurried hurried
"""
GIVING = """
donner = give gave given; montrer = show showed shown; envoyer = send sent sent; offrir = offer offered offered
apporter = bring brought brought; prêter = lend lent lent; vendre = sell sold sold
"""
# With the French preposition and the English one.
MOVING = """
aller = go went gone à to; venir = come came come de from; rester = stay stayed stayed à at
arriver = arrive arrived arrived à at; travailler = work worked worked à at; entrer = go went gone dans into
sortir = come came come de out_of; courir = run ran run à to; marcher = walk walked walked vers towards
rentrer = come_back came_back come_back de from
"""
OTHER_VERBS = """
être = be was been; avoir = have had had; vouloir = want wanted wanted; savoir = know knew known
habiter = live lived lived; partir = leave left left; penser = think thought thought; croire = believe believed believed
dire = say said said; naître = be_born was_born been_born; ouvrir = open opened opened; fermer = close closed closed
parler = speak spoke spoken; commencer = begin began begun; finir = end ended ended; espérer = hope hoped hoped
apprendre = learn learned learned
"""

ALWAYS = "tous les jours|every day;le matin|in the morning;le soir|in the evening;le week-end|at the weekend"
ALWAYS += ";le dimanche|on Sundays;le lundi|on Mondays;le samedi|on Saturdays;avec plaisir|with pleasure"
YESTERDAY = "hier|yesterday;ce matin|this morning;hier soir|yesterday evening;la semaine dernière|last week"
YESTERDAY += ";lundi dernier|last Monday;vendredi dernier|last Friday"
YESTERDAY += ";l'année dernière|last year;le mois dernier|last month"
TOMORROW = "demain|tomorrow;ce soir|this evening;demain matin|tomorrow morning;la semaine prochaine|next week"
TOMORROW += ";lundi prochain|next Monday;samedi prochain|next Saturday"
TOMORROW += ";l'année prochaine|next year;cet après-midi|this afternoon"
OFTEN = "souvent|often;toujours|always;parfois|sometimes;rarement|rarely"
FEELINGS = "faim|hungry;soif|thirsty;froid|cold;chaud|hot;peur|afraid;sommeil|sleepy;raison|right;tort|wrong"
WEATHER = "il pleut|it is raining;il neige|it is snowing;il fait froid|it is cold;il fait chaud|it is hot"
WEATHER += ";il fait beau|the weather is nice;il fait mauvais|the weather is bad;il y a du vent|it is windy"
WHERE = "devant|in front of;derrière|behind;à côté de|next to;près de|near;en face de|opposite;loin de|far from"
INSIDE = "sac|boîte|panier|valise|armoire|maison|appartement|chambre|cuisine"
INSIDE += "|jardin|parc|village|restaurant|hôtel|magasin|école"
FURNITURE = "table|chaise|lit|étagère|tapis|armoire"
WELL = "chanter danser nager cuisiner travailler dormir jouer"
FAST = "courir nager marcher parler travailler"
COUNTRIES = """
en France; en Allemagne Germany; en Italie Italy; en Espagne Spain; en Angleterre England; au Canada; au Japon Japan
en Chine China; au Portugal; au Mexique Mexico; au Brésil Brazil; aux États-Unis the_United_States
aux Pays-Bas the_Netherlands; en Belgique Belgium; en Suisse Switzerland; au Maroc Morocco; en Irlande Ireland; à Paris
à Londres London; à Rome; à Lyon; à Bruxelles Brussels; à Genève Geneva; à Marseille; à Berlin; à Vienne Vienna
à Madrid; en Grèce Greece; en Norvège Norway
"""
LANGUAGES = "français|French;anglais|English;espagnol|Spanish;italien|Italian;allemand|German;japonais|Japanese"
LANGUAGES += ";chinois|Chinese;portugais|Portuguese;arabe|Arabic;russe|Russian"
NAMES = (
    "Marie f;Paul m;Anne f;Alice f;Émile m;Emma f;Lucas m;Sophie f;Julie f;Thomas m;Pierre m;Claire f;Antoine m;Louis m"
)
DAYS = "lundi Monday;mardi Tuesday;mercredi Wednesday;jeudi Thursday;vendredi Friday;samedi Saturday;dimanche Sunday"
MONTHS = "janvier January;février February;mars March;avril April;mai May;juin June;juillet July;août August"
MONTHS += ";septembre September;octobre October;novembre November;décembre December"


@functools.cache
def table_entries(table: str) -> list[str]:
    """The entries of a table: what stands between semicolons or line ends."""
    return [cell.strip() for line in table.strip().splitlines() for cell in line.split(";") if cell.strip()]


@functools.cache
def word_pairs(table: str) -> list[tuple[str, str]]:
    """The entries of a table of French|English."""
    return [(french, english) for french, english in (cell.split("|") for cell in table_entries(table))]


@functools.cache
def verbs(table: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """The French infinitive, the English base and the remaining columns of a table of verbs."""
    rows = (cell.replace("=", " ").split() for cell in table_entries(table))
    return [(row[0].replace("_", " "), row[1].replace("_", " "), tuple(row[4:])) for row in rows]


def english_parts() -> dict[str, tuple[str, str]]:
    """The past and the participle of every English verb, by its base."""
    found: dict[str, tuple[str, str]] = {}
    for table in (TRANSITIVE, LIKING, INTRANSITIVE, GIVING, MOVING, OTHER_VERBS):
        for cell in table_entries(table):
            base, past, participle = cell.replace("=", " ").replace("_", "~").split()[1:4]
            found[base.replace("~", " ")] = (past.replace("~", " "), participle.replace("~", " "))
    return found


def _nouns() -> tuple[Noun, ...]:
    found = []
    for line in NOUN_TABLE.strip().splitlines():
        for cell in table_entries(line[1:]):
            forms, gender, meaning = cell.split(" ", 2)
            singular, _, many = forms.partition("/")
            one, _, several = meaning.partition("/")
            many, several = many or french.plural(singular), several or english.plural(one)
            found.append(Noun(singular, many, gender, one, several, line[0]))
    return tuple(found)


def _adjectives() -> tuple[Adjective, ...]:
    found = []
    for line in ADJECTIVE_TABLE.strip().splitlines():
        place, _, rest = line.partition(":")
        for cell in table_entries(rest):
            forms, meaning, comparative, kinds = cell.split()
            masculine, _, female = forms.partition("/")
            comparative = f"more {meaning}" if comparative == "-" else comparative
            female = female or french.feminine(masculine)
            kinds = expand_kinds(kinds).replace("v", "vu")
            found.append(Adjective(masculine, female, place == "before", meaning, comparative, kinds))
    return tuple(found)


def expand_kinds(kinds: str) -> str:
    """What goes with places goes with homes and places of work too, each kind once."""
    return "".join(dict.fromkeys(kinds.replace("l", "lhi")))


NOUNS = _nouns()
ADJECTIVES = _adjectives()
PARTS = english_parts()
